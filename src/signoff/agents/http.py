"""What models over HTTP share: how a question is put, bounded, sorted when refused, judged.

A kind says how a question becomes a call of its official client and what its errors mean.
The client is imported when it is first used, and shared by equal servers. Retries are the
engine's, so the clients' own are off; connections are not kept, so nothing is left behind.
"""

from __future__ import annotations

import asyncio
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from importlib import import_module
from typing import Any, ClassVar

from signoff.agents.answer import ModelAnswer, judge, whole_characters
from signoff.agents.base import Health
from signoff.agents.http_errors import unreachable, without_secrets
from signoff.agents.server import Server, checked_address, key_from
from signoff.core.effects import AgentRequest, Reply
from signoff.errors import (
    AgentAuth,
    AgentBadRequest,
    AgentError,
    AgentTimeout,
    AgentTransient,
    ConfigError,
    ModelMissing,
)
from signoff.remedies import Install
from signoff.runtime.ports import Call, Capabilities

LOOK_SECONDS = 5.0
"""How long a look at a server's health or its models may take."""


@dataclass(frozen=True)
class ModelRequest:
    """A request as every kind of HTTP model understands it."""

    prompt: str
    system: str | None
    model: str
    schema: dict[str, Any] | None
    options: dict[str, Any]


class HttpModel(ABC):
    """A model behind an address."""

    capabilities: Capabilities
    kind: ClassVar[str]
    """Of agent; also the name of the extra and of the client's package."""
    heavy: ClassVar[tuple[str, ...]]
    """What the client imports, some of it late: seconds that nobody else should wait for."""
    who: str
    """What people call it."""
    vendor_address: ClassVar[str]
    vendor_key_env: ClassVar[str | None]
    """The variable that holds the key of the vendor's own address."""
    reserved: ClassVar[frozenset[str]]
    """Options that would change what is asked, not how."""

    def __init__(
        self,
        *,
        model: str | None = None,
        base_url: str | None = None,
        key_env: str | None = None,
        timeout: float = 600.0,
        connect_timeout: float = 10.0,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._model = model
        given = None if base_url is None else checked_address(base_url)
        vendors = self.vendor_key_env is not None and given == self.vendor_address
        self._base_url = None if vendors else given
        self._key_env = key_env
        self._timeout = positive("timeout", timeout)
        self._connect_timeout = positive("connect_timeout", connect_timeout)
        self._options = dict(options or {})

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Answers, or raises one of the `AgentError` family."""
        question = self._question(request)
        server = self._server()
        try:
            async with self._sorted(server, self._timeout):
                answer = await self._answer(server, question, call)
        except AgentBadRequest as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            raise await self._missing(question.model, error) from None
        return judge(answer, request.schema)

    async def models(self) -> list[str]:
        """Returns the names of the models the server offers."""
        server = self._server()
        async with self._sorted(server, LOOK_SECONDS):
            return await self._names(server)

    async def health(self) -> Health:
        """Looks whether the server answers and takes the key; costs nothing."""
        try:
            names = await self.models()
        except AgentError as error:
            return Health(False, str(error), self._cure(error), error.remedies)
        return self._judged_health(names)

    async def _missing(self, model: str, error: AgentError) -> AgentError:
        """Returns what a 404 means: the server's list tells a missing model from a wrong path."""
        with suppress(AgentError):
            names = await self.models()
            if model not in names:
                return ModelMissing(
                    f"{self.who} at {self._address} has no model {model!r}",
                    model=model,
                    available=names,
                )
        return error

    @abstractmethod
    async def _answer(self, server: Server, question: ModelRequest, call: Call) -> ModelAnswer:
        """Asks the client, passing on what streams in."""

    @abstractmethod
    async def _names(self, server: Server) -> list[str]:
        """Lists the models."""

    @abstractmethod
    def _refusal(self, server: Server, error: Exception) -> AgentError | None:
        """Returns what an error of the client means, or None when it is no refusal."""

    def _judged_health(self, names: list[str]) -> Health:
        return Health(ready=True, detail=f"{self._server().address}, {len(names)} models")

    def _cure(self, error: AgentError) -> str:
        if isinstance(error, AgentAuth):
            return self._remedy
        if isinstance(error, AgentTransient | AgentTimeout):
            return f"check that {self._address} can be reached from here"
        return ""

    @property
    def _address(self) -> str:
        return self._base_url or self.vendor_address

    @property
    def _remedy(self) -> str:
        variable = self._key_variable
        if variable is None:
            return f"check base_url {self._address}, and name a key with key_env if it needs one"
        return f"check the key in {variable}"

    @property
    def _key_variable(self) -> str | None:
        # The vendor's variable is for the vendor: another address gets only what it was given.
        return self._key_env or (self.vendor_key_env if self._base_url is None else None)

    def _server(self) -> Server:
        return Server(
            address=self._address,
            key=key_from(self._key_variable),
            vendors=self._base_url is None and self.vendor_key_env is not None,
            timeout=self._timeout,
            connect_timeout=self._connect_timeout,
        )

    def _question(self, request: AgentRequest) -> ModelRequest:
        if request.edit:
            raise AgentBadRequest(
                f"{self.who} answers in words and cannot edit files; "
                "ask a command-line agent (claude, codex, gemini)"
            )
        model = request.model or self._model
        if not model:
            raise AgentBadRequest(f"{self.who} needs a model: set `model:` for this agent")
        options = {**self._options, **request.options}
        wrong = sorted(self.reserved & set(options))
        if wrong:
            raise AgentBadRequest(f"{self.who} takes no option {wrong[0]!r}; signoff sets it")
        system = whole_characters(request.system) if request.system else None
        prompt = whole_characters(request.prompt)
        return ModelRequest(prompt, system, model, request.schema, options)

    @asynccontextmanager
    async def _sorted(self, server: Server, seconds: float) -> AsyncIterator[None]:
        """Bounds what happens inside, and turns what goes wrong there into an `AgentError`."""
        await self._load()
        try:
            async with asyncio.timeout(seconds):
                yield
        except AgentError:
            raise
        except TimeoutError:
            raise AgentTimeout(
                f"{self.who} at {server.address} gave no answer within {seconds:g} seconds"
            ) from None
        except Exception as error:  # noqa: BLE001  # clients raise trees of their own
            # Not chained: a server's words, headers and all, would show in a traceback.
            raise self._meaning(server, error) from None

    async def _load(self) -> None:
        missing = [name for name in self.heavy if sys.modules.get(name) is None]
        if missing:
            with installed(self.kind):
                await asyncio.to_thread(lambda: [import_module(name) for name in missing])

    def _meaning(self, server: Server, error: Exception) -> Exception:
        refusal = self._refusal(server, error)
        if refusal is not None:
            return refusal
        if isinstance(error, ValueError):
            said = without_secrets(str(error), server.key)
            return AgentTransient(f"{self.who} at {server.address} sent what is no answer: {said}")
        if isinstance(error, (OSError, *_transport_errors())):
            return unreachable(self.who, server.address, error)
        return error


@contextmanager
def installed(extra: str) -> Iterator[None]:
    """Says how to get a client that is not installed."""
    try:
        yield
    except ImportError as error:
        raise AgentBadRequest(
            f"the {extra} client is not installed, or too old", remedy=Install(extra)
        ) from error


def positive(name: str, seconds: float) -> float:
    """Returns a time in seconds; raises `ConfigError` when it is none."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        raise ConfigError(f"{name} is {seconds!r}; it is a number of seconds above 0")
    return float(seconds)


def _transport_errors() -> tuple[type[Exception], ...]:
    """Returns the errors of whichever HTTP library the clients brought along."""
    loaded = [sys.modules[name] for name in ("httpx", "httpx2") if name in sys.modules]
    return tuple(
        kind for each in loaded for kind in (each.HTTPError, each.InvalidURL, each.StreamError)
    )
