"""A cassette agent passes the tests of the agent it wraps, recorded and replayed."""

from pathlib import Path
from typing import Any

import pytest

from signoff.core.effects import AgentRequest, Reply
from signoff.core.errors import AgentError
from signoff.runtime.ports import Agent, Call
from signoff.testing import CassetteAgent
from tests.agent_suite.answers import AgentTextTests, AnswerTests, TruncationTests
from tests.agent_suite.faults import FaultTests
from tests.contract.test_agents_scripted import ScriptedHarness


class ReplayingHarness(ScriptedHarness):
    """Records every call first, then replays it."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def agent(self, *, timeout: float | None = None) -> Agent:
        return Replaying(super().agent(timeout=timeout), self._file)


class Replaying:
    def __init__(self, inner: Agent, file: Path) -> None:
        self._inner = inner
        self._file = file
        self._calls = 0

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        self._calls += 1
        file = self._file.with_name(f"{self._calls}.yaml")
        recorded = CassetteAgent(file=file, agent=self._inner, mode="record", name="model")
        outcome = await _outcome(recorded, request, call)
        replayed = CassetteAgent(file=file, agent=UnusedAgent(), mode="replay", name="model")
        again = await _outcome(replayed, request, call)
        assert _key(again) == _key(outcome)
        if isinstance(again, AgentError):
            raise again
        return again


async def _outcome(agent: Agent, request: AgentRequest, call: Call) -> Reply | AgentError:
    try:
        return await agent.ask(request, call)
    except AgentError as error:
        return error


def _key(outcome: Reply | AgentError) -> Any:
    return (type(outcome), str(outcome)) if isinstance(outcome, AgentError) else outcome


class UnusedAgent:
    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        raise AssertionError("a replay calls no agent")


class TestReplaying(AnswerTests, TruncationTests, AgentTextTests, FaultTests):
    @pytest.fixture
    def harness(self, tmp_path: Path) -> ReplayingHarness:
        return ReplayingHarness(tmp_path / "tape.yaml")
