from collections.abc import AsyncIterator

import pytest

from signoff.agents.ollama import OllamaModel
from signoff.testing import AgentSuite
from tests.contract.http_harness import KEY, KEY_ENV, HttpHarness
from tests.stubs.ollama import OllamaServer


class TestOllamaModel(AgentSuite):
    @pytest.fixture
    async def harness(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[HttpHarness]:
        monkeypatch.setenv(KEY_ENV, KEY)
        async with OllamaServer() as server:
            yield HttpHarness(server, OllamaModel, num_ctx=500_000)
