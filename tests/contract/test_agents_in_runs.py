"""HTTP models in a run: configured, counted, retried, parked and cancelled."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from signoff.app.settings.agents import build_agents
from signoff.app.settings.settings import AgentSettings
from signoff.core.context import StepContext
from signoff.core.outcome import Outcome, Status
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.runtime.services import Backoff
from signoff.store.sqlite import SqliteStore
from tests.agent_harness import Fault, Refusal, TextReply
from tests.contract.http_harness import KEY, KEY_ENV, PASS, SCHEMA
from tests.stubs.anthropic import AnthropicServer
from tests.stubs.model_server import ModelServer
from tests.stubs.ollama import OllamaServer
from tests.stubs.openai import OpenAIServer


async def draft_and_review(ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
    draft = await ctx.ask("writer", "Write.", key="draft")
    reviews = [
        (await ctx.ask(name, draft.text, key=name, schema=SCHEMA)).value
        for name in ("critic", "judge")
    ]
    return Outcome.OK, {"draft": draft.text, "reviews": reviews}


REVIEW = Workflow("review", StepDef("work", handler=draft_and_review, next={Outcome.OK: None}))


@dataclass(frozen=True)
class ThreeAgents:
    """An engine whose writer, critic and judge are three servers."""

    engine: Engine
    writer: ModelServer
    critic: ModelServer
    judge: ModelServer
    files: Path


@pytest.fixture
async def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ThreeAgents]:
    monkeypatch.setenv(KEY_ENV, KEY)
    async with AsyncExitStack() as stack:
        writer = await stack.enter_async_context(OllamaServer())
        critic = await stack.enter_async_context(OpenAIServer())
        judge = await stack.enter_async_context(AnthropicServer())
        await writer.set_behaviors(TextReply("A draft."))
        await critic.set_behaviors(TextReply(PASS))
        await judge.set_behaviors(TextReply(PASS))
        settings = {
            "writer": agent_settings("ollama", writer.url),
            "critic": agent_settings("openai", f"{critic.url}/v1"),
            "judge": agent_settings("anthropic", judge.url),
        }
        store = SqliteStore(tmp_path / "signoff.db")
        stack.callback(store.close)
        engine = Engine(store, agents=build_agents(settings), backoff=Backoff(first=0.01))
        await stack.enter_async_context(engine)
        yield ThreeAgents(engine, writer, critic, judge, tmp_path)


def agent_settings(kind: str, url: str) -> AgentSettings:
    options = {"base_url": url, "key_env": KEY_ENV, "model": "stub-small"}
    return AgentSettings(kind, options=options)


async def test_one_run_mixes_every_kind_and_counts_them_all(agents: ThreeAgents) -> None:
    """Writer, critic and judge may be different agents, each the best or cheapest for its role."""
    result = await agents.engine.start(REVIEW, name="run")

    assert result.status is Status.COMPLETED
    assert result.state == {"draft": "A draft.", "reviews": [{"verdict": "pass"}] * 2}
    assert (result.spend.calls, result.spend.tokens) == (3, 57)
    assert result.spend.usd is None
    stored = b"".join(path.read_bytes() for path in agents.files.iterdir())
    assert b"A draft." in stored
    assert KEY.encode() not in stored


async def test_only_the_call_to_a_busy_server_is_retried(agents: ThreeAgents) -> None:
    """The draft was paid for once."""
    await agents.critic.set_behaviors(Refusal(Fault.DOWN), Refusal(Fault.BUSY), TextReply(PASS))

    result = await agents.engine.start(REVIEW, name="run")

    assert result.status is Status.COMPLETED
    assert len(agents.critic.received_requests()) == 3
    assert len(agents.writer.received_requests()) == 1


async def test_an_exhausted_quota_parks_the_run_until_the_reset(agents: ThreeAgents) -> None:
    """Nothing is lost meanwhile, and nothing is asked twice afterwards."""
    await agents.judge.set_behaviors(Refusal(Fault.QUOTA, seconds=7200))
    parked = await agents.engine.start(REVIEW, name="run")
    await agents.judge.set_behaviors(TextReply(PASS))

    result = await agents.engine.resume("run", REVIEW)

    assert parked.status is Status.PARKED
    assert parked.due_at is not None
    assert result.status is Status.COMPLETED
    assert [
        len(server.received_requests()) for server in (agents.writer, agents.critic, agents.judge)
    ] == [1, 1, 2]
