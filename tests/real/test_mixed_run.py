"""One run that every kind of agent takes part in, and the same run from a cassette."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from signoff.agents.cassette import CassetteAgent
from signoff.agents.check import CheckAgent
from signoff.agents.local import LocalModel
from signoff.agents.local_process import model_queue
from signoff.agents.manual import ManualAgent
from signoff.agents.ollama import OllamaModel
from signoff.agents.weights import SMOLLM2, State, model_cache
from signoff.core.codec import decode
from signoff.core.context import StepContext
from signoff.core.outcome import Outcome, Status
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.runtime.ports import Agent
from signoff.runtime.result import RunResult
from signoff.store.sqlite import SqliteStore
from tests.agent_harness import TextReply
from tests.real.test_local import RUNNER
from tests.real.vendors import CLAUDE, CODEX, KEY, KEY_NAME
from tests.stubs.ollama import OllamaServer
from tests.stubs.vendors.server import Say

pytestmark = [pytest.mark.real, pytest.mark.slow]

PROMPTS = {
    "claude": "Draft a line about tea.",
    "codex": "Make the line shorter.",
    "ollama": "Make the line warmer.",
    "manual": "Choose the best line.",
    "check": "Tea warms.",
    "local": "Write one sentence about tea.",
}


def _step(agent: str, following: str | None) -> StepDef:
    async def work(ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
        reply = await ctx.ask(agent, PROMPTS[agent])
        return Outcome.OK, {agent: reply.value if agent == "check" else reply.text}

    return StepDef(agent, handler=work, next={Outcome.OK: following})


NAMES = list(PROMPTS)
WORKFLOW = Workflow(
    "everybody",
    *(_step(name, after) for name, after in zip(NAMES, [*NAMES[1:], None], strict=True)),
)


@pytest.fixture
def everybody(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Checks that the real programs and the real model are installed."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(RUNNER)])
    monkeypatch.setenv(KEY_NAME, KEY)
    here = {
        "claude (make agents)": CLAUDE.program is not None,
        "codex (make agents)": CODEX.program is not None,
        "the local model (make model)": find_spec("xllamacpp") is not None
        and model_cache(os.environ).state(SMOLLM2) is State.READY,
    }
    missing = [name for name, there in here.items() if not there]
    if missing:
        words = f"a mixed run needs {', '.join(missing)}"
        if request.config.getoption("--real"):
            pytest.fail(words)
        pytest.skip(words)
    yield
    model_queue().close()


async def test_all_kinds_of_agents_work_in_one_run_and_a_cassette_replays_it(
    everybody: None, tmp_path: Path
) -> None:
    """Users mix agents freely, and test a recorded workflow without cost."""
    tape = tmp_path / "tape.yaml"
    claude, codex = CLAUDE.stub(Say("Tea warms the hands.")), CODEX.stub(Say("Tea warms."))
    try:
        async with OllamaServer() as ollama:
            await ollama.set_behaviors(TextReply("Tea warms you."))
            live: dict[str, Agent] = {
                "claude": CLAUDE.agent(claude.url, tmp_path / "home"),
                "codex": CODEX.agent(codex.url, tmp_path / "home"),
                "ollama": OllamaModel(model="stub-small", base_url=ollama.url),
                "check": CheckAgent(function="tests.real.test_mixed_run:is_short"),
                "local": LocalModel(),
            }
            recorded = {
                name: CassetteAgent(file=tape, agent=agent, mode="record", name=name)
                for name, agent in live.items()
            }
            first = await run(tmp_path / "first.db", recorded)
    finally:
        claude.close()
        codex.close()
    # From here on every stub is closed, so only the cassette can answer.
    replayed = {
        name: CassetteAgent(file=tape, agent=agent, mode="replay", name=name)
        for name, agent in live.items()
    }

    second = await run(tmp_path / "second.db", replayed)

    assert first.status is Status.COMPLETED
    assert first.state["claude"] == "Tea warms the hands."
    assert first.state["codex"] == "Tea warms."
    assert first.state["ollama"] == "Tea warms you."
    assert first.state["manual"] == "The short one."
    assert first.state["check"]["overall"] == "PASS"
    assert "tea" in first.state["local"].lower()
    assert second.state == first.state
    assert journal(tmp_path / "second.db") == journal(tmp_path / "first.db")


def is_short(text: str) -> list[str]:
    """Reports a text that is too long."""
    return [] if len(text) < 40 else ["too long"]


async def run(database: Path, agents: Mapping[str, Agent]) -> RunResult:
    """Drives the run to its end, including the human's answer."""
    store = SqliteStore(database)
    async with Engine(store, agents={**agents, "manual": ManualAgent()}) as engine:
        waiting = await engine.start(WORKFLOW, name="mixed")
        (item,) = waiting.inbox
        answer = json.dumps({"value": "The short one."})
        store.answer(item.id, answer, "ann", 0.0, item.digest)
        result = await engine.resume("mixed", WORKFLOW)
    store.close()
    return result


def journal(database: Path) -> list[dict[str, Any]]:
    """Returns what happened, without times, chance and the processes that answered."""
    store = SqliteStore(database)
    rows = store.journal(store.row("mixed").id)
    events = [event for row in rows for event in decode(row.events, store.blob)]
    store.close()
    return [
        {name: value for name, value in event.items() if name not in ("at", "seed")}
        for event in events
        if event["e"] != "effect_running"
    ]
