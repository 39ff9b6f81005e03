from collections.abc import AsyncIterator

import pytest

from signoff.agents.anthropic import AnthropicModel
from signoff.testing import AgentSuite
from tests.contract.http_harness import KEY, KEY_ENV, HttpHarness
from tests.stubs.anthropic import AnthropicServer


class TestAnthropicModel(AgentSuite):
    @pytest.fixture
    async def harness(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[HttpHarness]:
        monkeypatch.setenv(KEY_ENV, KEY)
        async with AnthropicServer() as server:
            yield HttpHarness(server, AnthropicModel)
