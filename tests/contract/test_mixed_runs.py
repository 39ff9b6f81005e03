"""One run with every kind of agent, and the same run replayed without a network."""

import json
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pytest

from signoff import Arg
from signoff.app.agents import build_agents
from signoff.app.settings import AgentSettings
from signoff.core.codec import decode
from signoff.core.context import StepContext
from signoff.core.outcome import Outcome, Status
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.runtime.result import RunResult
from signoff.store.sqlite import MemoryStore
from signoff.testing import FrozenClock
from tests.agent_harness import Fault, Refusal, TextReply
from tests.contract.http_harness import KEY, KEY_ENV, PASS, SCHEMA
from tests.stubs.anthropic import AnthropicServer
from tests.stubs.ollama import OllamaServer
from tests.stubs.openai import OpenAIServer

Work = tuple[Outcome, dict[str, Any]]

EDITOR = """
import pathlib, sys
pathlib.Path("draft.md").write_text(sys.stdin.read())
print("Edited.")
"""
EDITS = {"argv": [sys.executable, "-c", EDITOR], "edits": True}

CHANCE = frozenset({"at", "seed", "seconds"})
"""What differs between any two runs."""
OURS = frozenset({"effect_running"})
"""Events about processes, which a replay does not have."""


class RecordedRun(NamedTuple):
    """A run and its recorded events, without times and random values."""

    result: RunResult
    events: list[dict[str, Any]]


async def draft(ctx: StepContext) -> Work:
    return Outcome.OK, {"text": (await ctx.ask("writer", "Write.")).text}


async def review(ctx: StepContext) -> Work:
    async def one(item: StepContext, critic: str) -> Any:
        text = ctx.step_state["text"]
        return (await item.ask(critic, f"Review: {text}", schema=SCHEMA)).value

    checked = await ctx.ask("rules", "", key="rules", artifact=ctx.step_state["text"])
    return Outcome.OK, {
        "verdicts": await ctx.map(["critic", "judge"], one),
        "checked": checked.value["overall"],
    }


async def edit(ctx: StepContext, workspace: Annotated[str, Arg("where to edit")]) -> Work:
    reply = await ctx.ask("editor", ctx.step_state["text"], workspace=workspace, edit=True)
    return Outcome.OK, {"files": sorted(reply.files)}


async def sign(ctx: StepContext) -> Work:
    return Outcome.OK, {"signed": (await ctx.ask("person", "Sign it.")).text}


MIXED = Workflow(
    "mixed",
    StepDef("draft", handler=draft, next={Outcome.OK: "review"}),
    StepDef("review", handler=review, next={Outcome.OK: "edit"}),
    StepDef("edit", handler=edit, next={Outcome.OK: "sign"}),
    StepDef("sign", handler=sign, next={Outcome.OK: None}),
)


def long_enough(text: str) -> list[str]:
    return [] if len(text) > 5 else ["too short"]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path / "workspace"


async def record_run(agents: Mapping[str, AgentSettings], workspace: Path) -> RecordedRun:
    """Drives the whole run, including the human's part, and returns its events."""
    _empty(workspace)
    store, clock = MemoryStore(), FrozenClock()
    async with Engine(store, agents=build_agents(agents), clock=clock) as engine:
        await engine.start(MIXED, {"workspace": str(workspace)}, name="run")
        for item in store.items("run"):
            answer = json.dumps({"value": "Signed.", "text": ""})
            store.answer(item.id, answer, "ann", 0.0, item.digest)
        result = await engine.resume("run", MIXED)
    rows = store.journal(store.row("run").id)
    events = [event for row in rows for event in decode(row.events, store.blob)]
    recorded_events = [_timeless(event) for event in events if event["e"] not in OURS]
    # Critics answer side by side, in whatever order they come to it.
    return RecordedRun(result, sorted(recorded_events, key=json.dumps))


async def test_a_recorded_run_is_the_same_run_with_the_network_off(
    tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cassette that changes anything in a run would prove nothing about the real one."""
    monkeypatch.setenv(KEY_ENV, KEY)
    tape = tmp_path / "tape.yaml"
    async with AsyncExitStack() as stack:
        writer = await stack.enter_async_context(OllamaServer())
        critic = await stack.enter_async_context(OpenAIServer())
        judge = await stack.enter_async_context(AnthropicServer())
        await writer.set_behaviors(TextReply("A draft."))
        await critic.set_behaviors(Refusal(Fault.BUSY), TextReply(PASS))
        await judge.set_behaviors(TextReply(PASS))
        real = {
            "real-writer": agent_settings("ollama", writer.url),
            "real-critic": agent_settings("openai", f"{critic.url}/v1"),
            "real-judge": agent_settings("anthropic", judge.url),
            "real-editor": AgentSettings("command", options=EDITS),
        }
        recorded = await record_run({**real, **cassettes(tape, "record")}, workspace)
    assert recorded.result.status is Status.COMPLETED, recorded.result.reason

    replayed = await record_run({**real, **cassettes(tape, "replay")}, workspace)

    assert recorded.result.state == {
        "text": "A draft.",
        "verdicts": [{"verdict": "pass"}] * 2,
        "checked": "PASS",
        "files": ["draft.md"],
        "signed": "Signed.",
    }
    assert replayed.result.state == recorded.result.state
    assert replace(replayed.result.spend, seconds=recorded.result.spend.seconds) == (
        recorded.result.spend
    )
    assert replayed.events == recorded.events
    assert (workspace / "draft.md").read_text() == "A draft."
    assert KEY not in tape.read_text()


def cassettes(tape: Path, mode: str) -> dict[str, AgentSettings]:
    """All agents of the run: models through a cassette, a check and a human directly."""
    names = ("writer", "critic", "judge", "editor")
    on_tape = {
        name: AgentSettings(
            "cassette", options={"agent": f"real-{name}", "file": str(tape), "mode": mode}
        )
        for name in names
    }
    check = AgentSettings("check", options={"function": f"{__name__}:long_enough"})
    return {**on_tape, "rules": check, "person": AgentSettings("manual")}


def agent_settings(kind: str, url: str) -> AgentSettings:
    options = {"base_url": url, "key_env": KEY_ENV, "model": "stub-small"}
    return AgentSettings(kind, options=options)


def _empty(workspace: Path) -> None:
    workspace.mkdir(exist_ok=True)
    (workspace / "draft.md").unlink(missing_ok=True)


def _timeless(event: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name not in CHANCE}
