"""What models over HTTP share: requests, time limits, error handling, health.

A subclass turns a request into a call of its official client and its errors into ours. The
client is imported on first use and shared by equal servers. The engine retries, so the
clients' own retries are off; connections are closed after each call, so none is left open.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from importlib import import_module
from typing import Any, ClassVar
from urllib.parse import urlsplit

from signoff.agents import failures
from signoff.agents.answer import ModelAnswer, judge, refuse_edits
from signoff.agents.base import Health, positive_seconds
from signoff.core.effects import AgentRequest, Reply
from signoff.core.errors import (
    AgentAuth,
    AgentBadRequest,
    AgentError,
    AgentTimeout,
    AgentTransient,
    ConfigError,
    ModelMissing,
)
from signoff.core.remedies import Install
from signoff.documents.control_characters import replace_lone_surrogates
from signoff.runtime.ports import Call, Capabilities, ModelChoice

_PLAIN_HEADERS = frozenset(
    "accept accept-encoding connection content-length content-type host idempotency-key "
    "transfer-encoding user-agent".split()
)

_LIBRARIES = frozenset({"httpx", "httpx2"})
"""The HTTP libraries of the clients; they have no other errors than those of transport."""


@dataclass(frozen=True)
class Server:
    """One server; equal servers share a client."""

    address: str
    key: str | None = field(repr=False)
    is_vendor: bool
    """Whether this is the vendor's own server, which may get the vendor's own variables."""
    timeout: float
    connect_timeout: float

    def http_options(
        self, *, key_headers: Collection[str], headers: Collection[str] = ()
    ) -> dict[str, Any]:
        """Returns the options of the HTTP client.

        `key_headers` carry the key and `headers` belong to the protocol; other headers are
        sent to the vendor's own server only.
        """
        return {
            # A redirect could send the prompt and the key to another server.
            "follow_redirects": False,
            "event_hooks": {"request": [self._header_filter(key_headers, headers)]},
            **self.local_options,
        }

    def sdk_options(self, sdk: Any, **headers: Collection[str]) -> dict[str, Any]:
        """Returns the options of a client of the SDKs that OpenAI and Anthropic share."""
        return {
            # The client insists on a key; without one the header is removed before sending.
            "api_key": self.key or "none",
            "base_url": self.address,
            "max_retries": 0,
            "default_headers": {"Connection": "close"},
            "http_client": sdk.DefaultAsyncHttpxClient(
                base_url=self.address,
                timeout=sdk.Timeout(self.timeout, connect=self.connect_timeout, pool=None),
                **self.http_options(**headers),
            ),
        }

    @property
    def local_options(self) -> dict[str, Any]:
        """Options of the HTTP client for servers on this machine; proxies cannot reach them."""
        address = urlsplit(self.address)
        host = address.hostname or ""
        if not _is_loopback(host):
            return {}
        host = f"[{host}]" if ":" in host else host
        # Some clients read the environment themselves; a mount overrides what they find.
        options: dict[str, Any] = {"trust_env": False, "mounts": {f"all://{host}": None}}
        return options

    def _header_filter(
        self, key_headers: Collection[str], headers: Collection[str]
    ) -> Callable[[Any], Awaitable[None]]:
        """Returns a hook that removes headers which clients take from the environment.

        Clients add keys, organizations and custom headers they find there, whatever server
        they call. Only the vendor's own server may get them.
        """
        allowed = _PLAIN_HEADERS.union(headers, key_headers if self.key else ())

        async def strip(request: Any) -> None:
            if not self.is_vendor:
                for name in [name for name in request.headers if name.lower() not in allowed]:
                    del request.headers[name]

        return strip


def parse_base_url(text: str) -> str:
    """Returns a base URL without a trailing slash; raises `ConfigError` when it is invalid."""
    if "@" in text:
        raise ConfigError(
            "base_url contains a name or password; put the key in an environment variable "
            "and name it with key_env"
        )
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as error:
        raise ConfigError(f"base_url {text!r} is not a URL: {error}") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfigError(f"base_url {text!r} is not a URL such as http://localhost:8080")
    return text.rstrip("/")


def read_key(variable: str | None) -> str | None:
    """Returns the key in an environment variable; raises `AgentAuth` when there is none."""
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise AgentAuth(f"{variable} holds no key; set it and resume")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise AgentAuth(f"{variable} does not hold a valid key")
    return key


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


HEALTH_SECONDS = 5.0
"""How long a check of a server's health or models may take."""


@dataclass(kw_only=True, eq=False, repr=False)
class HttpModel(ABC):
    """A model on a server; its fields are the options of the settings."""

    capabilities = Capabilities()
    kind: ClassVar[str]
    """The kind of agent; also the name of the extra and of the client's package."""
    label = ""
    """Its name in messages."""
    vendor_address: ClassVar[str]
    vendor_key_env: ClassVar[str | None]
    """The variable that holds the key of the vendor's own address."""
    reserved_options: ClassVar[frozenset[str]]
    """Options that signoff sets itself."""

    model: str | None = None
    base_url: str | None = None
    """Another address than the vendor's."""
    key_env: str | None = None
    timeout: float = 600.0
    connect_timeout: float = 10.0
    options: Mapping[str, Any] | None = None
    """Sent with every call."""

    def __post_init__(self) -> None:
        address = None if self.base_url is None else parse_base_url(self.base_url)
        is_vendor = self.vendor_key_env is not None and address == self.vendor_address
        self.base_url = None if is_vendor else address
        self.timeout = positive_seconds("timeout", self.timeout)
        self.connect_timeout = positive_seconds("connect_timeout", self.connect_timeout)

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Returns the answer; raises an `AgentError` when there is none."""
        # Everything that can be refused is refused before the server is asked, which may bill it.
        model, prepared = self._prepare(request)
        server = self._server()
        try:
            async with self._converting_errors(server, self.timeout):
                answer = await self._answer(server, model, prepared, call)
        except AgentBadRequest as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            # A 404 may also come from a wrong path or a gateway, so the list of models decides.
            raise await self._explain_not_found(model, error) from None
        return judge(answer, request.schema)

    async def models(self) -> list[str]:
        """Returns the names of the models the server offers."""
        server = self._server()
        async with self._converting_errors(server, HEALTH_SECONDS):
            return await self._model_names(server)

    async def health(self) -> Health:
        """Checks that the server answers and accepts the key; costs nothing."""
        try:
            self._server()
        except AgentError as error:
            return Health(False, str(error), self._health_hint(error), error.remedies, absent=True)
        if self.model is None and self.capabilities.model_choice is ModelChoice.REQUIRED:
            # Each call would have to name one.
            found = "key found, " if self._key_variable else ""
            return Health(False, f"{found}no model set", "set `model:` for this agent")
        try:
            names = await self.models()
        except AgentError as error:
            return self.health_after(error)
        return self._health_with_models(names)

    def health_after(self, error: AgentError) -> Health:
        """Returns the health of a server that did not list its models."""
        if error.status == HTTPStatus.NOT_FOUND:
            # Gateways need not list models; they may still answer.
            return Health(True, f"{self._address}, which does not list its models")
        late = isinstance(error, AgentTimeout)
        answers = isinstance(error, AgentTransient) and error.status is not None
        hint = "look at the server's log" if answers else self._health_hint(error)
        absent = not answers and self._is_absent(error)
        return Health(False, str(error), hint, error.remedies, timed_out=late, absent=absent)

    async def _explain_not_found(self, model: str, error: AgentError) -> AgentError:
        """Returns what a 404 means: a missing model, if the server's list does not have it."""
        with suppress(AgentError):
            names = await self.models()
            if model not in names:
                return ModelMissing(
                    f"{self.label} at {self._address} has no model {model!r}",
                    model=model,
                    available=names,
                )
        return error

    @abstractmethod
    async def _answer(
        self, server: Server, model: str, request: AgentRequest, call: Call
    ) -> ModelAnswer:
        """Calls the client and emits the text as it arrives."""

    @abstractmethod
    async def _model_names(self, server: Server) -> list[str]:
        """Returns the names of the server's models."""

    @abstractmethod
    def _refusal(self, error: Exception) -> failures.ServerRefusal | None:
        """Returns the refusal behind an error of the client, or None when it is another error."""

    def _health_with_models(self, names: list[str]) -> Health:
        return Health(ready=True, detail=f"{self._address}, {len(names)} models")

    def _is_absent(self, error: AgentError) -> bool:  # noqa: ARG002  # for subclasses
        """Whether an error tells that nobody has set up a server."""
        return False

    def _health_hint(self, error: AgentError) -> str:
        if isinstance(error, AgentAuth):
            return self._key_hint
        if isinstance(error, AgentTransient | AgentTimeout):
            return f"check that {self._address} is reachable from this machine"
        return ""

    @property
    def _address(self) -> str:
        return self.base_url or self.vendor_address

    @property
    def _key_hint(self) -> str:
        variable = self._key_variable
        if variable is None:
            return f"check base_url {self._address}, and name a key with key_env if it needs one"
        return f"check the key in {variable}"

    @property
    def _key_variable(self) -> str | None:
        # The vendor's key is for the vendor only; another server gets a key only by key_env.
        return self.key_env or (self.vendor_key_env if self.base_url is None else None)

    def _server(self) -> Server:
        return Server(
            address=self._address,
            key=read_key(self._key_variable),
            is_vendor=self.base_url is None and self.vendor_key_env is not None,
            timeout=self.timeout,
            connect_timeout=self.connect_timeout,
        )

    def _prepare(self, request: AgentRequest) -> tuple[str, AgentRequest]:
        """Returns the model, and the request with the options of the settings."""
        refuse_edits(request, self.label)
        model = request.model or self.model
        if not model:
            raise AgentBadRequest(f"{self.label} needs a model: set `model:` for this agent")
        options = {**(self.options or {}), **request.options}
        reserved = sorted(self.reserved_options & set(options))
        if reserved:
            raise AgentBadRequest(
                f"{self.label} does not accept the option {reserved[0]!r}: signoff sets it"
            )
        system = replace_lone_surrogates(request.system) if request.system else None
        # In two parts, because joining a surrogate pair changes the length of its part.
        shared = replace_lone_surrogates(request.prompt[: request.shared])
        prompt = shared + replace_lone_surrogates(request.prompt[request.shared :])
        return model, replace(
            request, system=system, prompt=prompt, options=options, shared=len(shared)
        )

    @asynccontextmanager
    async def _converting_errors(self, server: Server, seconds: float) -> AsyncIterator[None]:
        """Limits the time of its block, and turns errors in it into `AgentError`."""
        await self._load()
        try:
            async with asyncio.timeout(seconds):
                yield
        except AgentError:
            raise
        except TimeoutError:
            raise AgentTimeout(
                f"{self.label} at {server.address} gave no answer within {seconds:g} seconds"
            ) from None
        except Exception as error:  # noqa: BLE001  # each client has its own errors
            # Not chained: a traceback would show the server's response with its headers.
            raise self._convert(server, error) from None

    async def _load(self) -> None:
        if self.kind in sys.modules:
            return
        try:
            # In a thread, because it takes long, and other calls go on meanwhile.
            await asyncio.to_thread(import_module, self.kind)
        except ImportError as error:
            raise AgentBadRequest(
                f"the {self.kind} client is not installed or too old", remedy=Install(self.kind)
            ) from error

    def _convert(self, server: Server, error: Exception) -> Exception:
        refusal = self._refusal(error)
        if refusal is not None:
            text = failures.redact_line(refusal.text, server.key)
            until = failures.retry_time(refusal.headers, text)
            return failures.refusal_error(
                self.label, refusal.status, text, until=until, remedy=self._key_hint
            )
        if isinstance(error, ValueError):
            # Without the line that leads to the manual of the client's library.
            lines = [line for line in str(error).splitlines() if "https://" not in line]
            text = failures.redact_line(" ".join(lines), server.key)
            invalid = AgentTransient(
                f"{self.label} at {server.address} sent an invalid response: {text}"
            )
            invalid.status = HTTPStatus.OK
            return invalid
        # Clients wrap transport errors in their own, so the whole chain of causes is searched.
        chain = list(failures.causes(error))
        libraries = {type(each).__module__.partition(".")[0] for each in chain}
        if _LIBRARIES & libraries or any(isinstance(each, OSError) for each in chain):
            return failures.connection_error(self.label, server.address, error)
        return error
