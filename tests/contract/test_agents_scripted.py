from datetime import UTC, datetime, timedelta

import pytest

from signoff.agents.scripted import ScriptedAnswer
from signoff.core.effects import AgentRequest
from signoff.errors import (
    AgentAuth,
    AgentBadOutput,
    AgentBadRequest,
    AgentError,
    AgentQuota,
    AgentTransient,
)
from signoff.runtime.ports import Agent
from signoff.testing import Delayed, ScriptedAgent
from signoff.testing.agent_harness import (
    Behaviour,
    BreaksOff,
    CutOff,
    Fault,
    Gone,
    Hangs,
    Harness,
    ReceivedRequest,
    Refuses,
    Says,
)
from signoff.testing.agent_suite.answers import AnswerPromises, CutOffPromises
from signoff.testing.agent_suite.bounds import CancelPromises
from signoff.testing.agent_suite.faults import FaultPromises
from signoff.testing.agent_suite.texts import AgentTextPromises

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
        self._behaviours: tuple[Behaviour, ...] = ()
        self._agents: list[ScriptedAgent] = []

    def agent(self, *, timeout: float | None = None) -> Agent:
        first = self._behaviours[0]
        usage = first.usage if isinstance(first, Says | CutOff) else None
        agent = ScriptedAgent(usage=usage).on(
            lambda request: True, *(said(behaviour) for behaviour in self._behaviours)
        )
        self._agents.append(agent)
        return agent

    async def act(self, *behaviours: Behaviour) -> None:
        self._behaviours = behaviours

    def asked(self) -> list[ReceivedRequest]:
        return [_asked(request) for agent in self._agents for request in agent.requests]

    async def under_way(self) -> int:
        return sum(agent.under_way for agent in self._agents)


class TestScriptedAgent(
    AnswerPromises, CutOffPromises, AgentTextPromises, FaultPromises, CancelPromises
):
    @pytest.fixture
    def harness(self) -> ScriptedHarness:
        return ScriptedHarness()


def said(behaviour: Behaviour) -> ScriptedAnswer:
    match behaviour:
        case Says(text):
            return text
        case CutOff():
            return AgentBadOutput("the answer was cut off")
        case BreaksOff() | Gone():
            return AgentTransient("nobody there")
        case Hangs():
            return Delayed(FOREVER, "too late")
        case Refuses(Fault.QUOTA, int(seconds)):
            until = datetime.now(UTC) + timedelta(seconds=seconds)
            return AgentQuota("used up", until=until)
        case Refuses(fault):
            return ERRORS[fault](fault.value)


def _asked(request: AgentRequest) -> ReceivedRequest:
    return ReceivedRequest(request.prompt, request.system, request.model)
