"""The tests that every kind of agent has to pass, for authors of agents.

Derive a class from `AgentSuite` in a test module and add one fixture: a harness that
creates the agent and simulates the model behind it, such as a server or a program (see
`tests.agent_harness`):

    class TestMyAgent(AgentSuite):
        @pytest.fixture
        async def harness(self):
            async with MyServer() as server:
                yield MyHarness(server)

The tests are coroutines, run by pytest-asyncio. If your agent has no timeout or no key, or
its server does not report why the model stopped, derive from the parts that apply.
"""

from __future__ import annotations

from tests.agent_suite.answers import AgentTextTests, AnswerTests, TruncationTests
from tests.agent_suite.faults import FaultTests, SecretTests
from tests.agent_suite.timeouts import CancelTests, TimeoutTests


class AgentSuite(
    AnswerTests, TruncationTests, AgentTextTests, FaultTests, CancelTests, TimeoutTests, SecretTests
):
    """All tests of an agent."""
