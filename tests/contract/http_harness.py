"""Connects an HTTP model to the stub server of its protocol."""

from collections.abc import Callable
from typing import Any

from signoff.agents.http import HttpModel
from signoff.runtime.ports import Agent
from tests.agent_harness import Behavior, Harness, ReceivedRequest
from tests.stubs.model_server import ModelServer

KEY = "sk-Secret-0123456789abcdef"
KEY_ENV = "STUB_MODEL_KEY"

SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"type": "string", "enum": ["pass", "fail"]}},
    "required": ["verdict"],
    "additionalProperties": False,
}
PASS = '{"verdict": "pass"}'


class HttpHarness(Harness):
    secret = KEY

    def __init__(
        self, server: ModelServer, make: Callable[..., HttpModel], path: str = "", **options: Any
    ) -> None:
        self.server = server
        self._make = make
        self._url = f"{server.url}{path}"
        self._options = options

    def agent(self, *, timeout: float | None = None, **options: Any) -> Agent:
        return self.create(**({} if timeout is None else {"timeout": timeout}), **options)

    def create(self, **options: Any) -> HttpModel:
        common = {"model": "stub-small", "base_url": self._url, "key_env": KEY_ENV}
        return self._make(**{**common, **self._options, **options})

    async def set_behaviors(self, *behaviors: Behavior) -> None:
        await self.server.set_behaviors(*behaviors)

    def received_requests(self) -> list[ReceivedRequest]:
        return self.server.received_requests()

    async def active_calls(self) -> int:
        return self.server.open
