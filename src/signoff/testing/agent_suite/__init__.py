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

from signoff.testing.agent_suite.answers import AnswerTests, TruncationTests
from signoff.testing.agent_suite.faults import FaultTests
from signoff.testing.agent_suite.secrets import SecretTests
from signoff.testing.agent_suite.texts import AgentTextTests
from signoff.testing.agent_suite.timeouts import CancelTests, TimeoutTests


class AgentSuite(
    AnswerTests,
    TruncationTests,
    AgentTextTests,
    FaultTests,
    CancelTests,
    TimeoutTests,
    SecretTests,
):
    """All of them."""
