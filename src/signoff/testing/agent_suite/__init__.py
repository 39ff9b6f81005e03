"""The promises every kind of agent keeps, as tests any author of an agent can run.

Derive a class from `AgentSuite` in a test module and give it one fixture: a harness that
makes the agent and plays the model behind it (a server, a program) the way a test wants
(see `signoff.testing.agent_harness`):

    class TestMyAgent(AgentSuite):
        @pytest.fixture
        async def harness(self):
            async with MyServer() as server:
                yield MyHarness(server)

The tests are coroutines: pytest-asyncio runs them. A kind without a clock or a key of its
own, or that is never told why its model stopped, derives from the parts that concern it.
"""

from __future__ import annotations

from signoff.testing.agent_suite.answers import AnswerPromises, CutOffPromises
from signoff.testing.agent_suite.bounds import CancelPromises, ClockPromises
from signoff.testing.agent_suite.faults import FaultPromises
from signoff.testing.agent_suite.secrecy import SecrecyPromises
from signoff.testing.agent_suite.texts import AgentTextPromises


class AgentSuite(
    AnswerPromises,
    CutOffPromises,
    AgentTextPromises,
    FaultPromises,
    CancelPromises,
    ClockPromises,
    SecrecyPromises,
):
    """All of them."""
