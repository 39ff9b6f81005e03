from datetime import UTC, datetime, timedelta

import pytest

from signoff.agents.scripted import ScriptedAnswer
from signoff.core.effects import AgentRequest
from signoff.core.errors import (
    AgentAuth,
    AgentBadOutput,
    AgentBadRequest,
    AgentError,
    AgentQuota,
    AgentTransient,
)
from signoff.runtime.ports import Agent
from signoff.testing import DelayedAnswer, ScriptedAgent
from tests.agent_harness import (
    Behavior,
    BrokenReply,
    Fault,
    Hang,
    Harness,
    ReceivedRequest,
    Refusal,
    TextReply,
    TruncatedReply,
    Unreachable,
)
from tests.agent_suite.answers import AgentTextTests, AnswerTests, TruncationTests
from tests.agent_suite.faults import FaultTests
from tests.agent_suite.timeouts import CancelTests

FOREVER = 3600.0

ERRORS: dict[Fault, type[AgentError]] = {
    Fault.AUTH: AgentAuth,
    Fault.QUOTA: AgentQuota,
    Fault.BUSY: AgentTransient,
    Fault.DOWN: AgentTransient,
    Fault.NO_MODEL: AgentBadRequest,
}


class ScriptedHarness(Harness):
    def __init__(self) -> None:
        self._behaviors: tuple[Behavior, ...] = ()
        self._agents: list[ScriptedAgent] = []

    def agent(self, *, timeout: float | None = None) -> Agent:
        first = self._behaviors[0]
        usage = first.usage if isinstance(first, TextReply | TruncatedReply) else None
        agent = ScriptedAgent(usage=usage).on(
            lambda request: True, *(scripted_answer(behavior) for behavior in self._behaviors)
        )
        self._agents.append(agent)
        return agent

    async def set_behaviors(self, *behaviors: Behavior) -> None:
        self._behaviors = behaviors

    def received_requests(self) -> list[ReceivedRequest]:
        return [_asked(request) for agent in self._agents for request in agent.requests]

    async def active_calls(self) -> int:
        return sum(agent.under_way for agent in self._agents)


class TestScriptedAgent(AnswerTests, TruncationTests, AgentTextTests, FaultTests, CancelTests):
    @pytest.fixture
    def harness(self) -> ScriptedHarness:
        return ScriptedHarness()


def scripted_answer(behavior: Behavior) -> ScriptedAnswer:
    match behavior:
        case TextReply(text):
            return text
        case TruncatedReply():
            return AgentBadOutput("the answer was cut off")
        case BrokenReply() | Unreachable():
            return AgentTransient("no server")
        case Hang():
            return DelayedAnswer(FOREVER, "too late")
        case Refusal(Fault.QUOTA, int(seconds)):
            until = datetime.now(UTC) + timedelta(seconds=seconds)
            return AgentQuota("used up", until=until)
        case Refusal(fault):
            return ERRORS[fault](fault.value)


def _asked(request: AgentRequest) -> ReceivedRequest:
    return ReceivedRequest(request.prompt, request.system, request.model)
