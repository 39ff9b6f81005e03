from collections.abc import AsyncIterator

import pytest

from signoff.agents.openai import OpenAIModel
from signoff.testing import AgentSuite
from tests.contract.http_harness import KEY, KEY_ENV, HttpHarness
from tests.stubs.openai import OpenAIServer


class TestOpenAIModel(AgentSuite):
    @pytest.fixture
    async def harness(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[HttpHarness]:
        monkeypatch.setenv(KEY_ENV, KEY)
        async with OpenAIServer() as server:
            yield HttpHarness(server, OpenAIModel, "/v1")
