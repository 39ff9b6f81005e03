"""Models served by Ollama, called through its own API.

Its OpenAI-compatible route ignores `num_ctx`, and both routes silently cut a prompt that
does not fit. So the native route is used, the context window is always sent, and the token
count that the server reports is compared with what was sent.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import aclosing, suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from signoff.agents.answer import (
    ModelAnswer,
    StreamedAnswer,
    chat_messages,
    token_count,
    with_schema,
)
from signoff.agents.base import Health, whole_number
from signoff.agents.failures import ServerRefusal
from signoff.agents.http import HttpModel, Server, parse_base_url
from signoff.core.effects import AgentRequest, Reply
from signoff.core.errors import AgentBadRequest, AgentError, AgentTransient, ConfigError
from signoff.core.spend import Usage
from signoff.runtime.effect_errors import with_usage
from signoff.runtime.ports import Call, Capabilities, ModelChoice

if TYPE_CHECKING:
    from ollama import AsyncClient

PORT = 11434

CHARACTERS_PER_TOKEN = 8
"""If a prompt has fewer tokens than this ratio gives, part of it was never read: tokenizers
put 3 to 5 characters into a token, and twice that only for blanks and repetitions."""

SMALLEST_WINDOW = 512
"""Tokens that every model can read; a prompt this small is never cut."""

BASE_URL = "base_url"
"""The option of a request that names another server."""

_REQUEST_OPTIONS = frozenset({"think", "keep_alive"})
"""Options of the request itself; all others belong to the model."""


@dataclass(kw_only=True, eq=False, repr=False)
class OllamaModel(HttpModel):
    """A model behind /api/chat."""

    kind = "ollama"
    capabilities = Capabilities(
        json_schema=True,
        system_prompt=True,
        streaming=True,
        free=True,
        provider="ollama",
        chat=True,
        length_option="num_predict",
        model_choice=ModelChoice.INSTALLED,
    )
    label = "Ollama"
    vendor_address = f"http://127.0.0.1:{PORT}"
    vendor_key_env = None
    reserved_options = frozenset({"model", "messages", "stream", "format", "tools"})

    num_ctx: int = 8192
    """The size of the context window in tokens."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.base_url = self.base_url and _native(self.base_url)
        whole_number("num_ctx", self.num_ctx)
        self._model_windows: dict[tuple[str, str], int | None] = {}
        """The largest window of each model, by server and model, as far as it is known."""

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Returns the answer; the option `base_url` asks another server."""
        options = dict(request.options)
        base_url = options.pop(BASE_URL, None)
        if base_url is None:
            if not (request.model or self.model):
                # With several models, a guess could be a model of another size, or for embeddings.
                names = await self.models()
                if len(names) != 1:
                    raise AgentBadRequest(f"{self._address}: {_no_model(names)}")
                request = replace(request, model=names[0])
            return await super().ask(request, call)
        return await self._at(str(base_url)).ask(replace(request, options=options), call)

    def _at(self, base_url: str) -> OllamaModel:
        """Returns this model on another server, which does not get the key of this one."""
        try:
            address = _native(parse_base_url(base_url))
        except ConfigError as error:
            raise AgentBadRequest(str(error)) from error
        if address == self._address:
            return self
        # The key belongs to the server in the settings. A request may come from someone else's
        # workflow and name any server.
        other = copy(self)
        other.base_url, other.key_env = address, None
        return other

    async def _answer(
        self, server: Server, model: str, request: AgentRequest, call: Call
    ) -> ModelAnswer:
        client = _client(server)
        options = {"num_ctx": self.num_ctx, **request.options}
        num_ctx = token_count(options["num_ctx"])
        if num_ctx is None:
            raise AgentBadRequest(f"num_ctx must be a number of tokens, not {options['num_ctx']!r}")
        window = await self._window(client, server, model, num_ctx)
        arguments = {name: options.pop(name) for name in _REQUEST_OPTIONS & set(options)}
        messages = _messages(request)
        try:
            parts: Any = await client.chat(
                model, messages, format=request.schema, options=options, stream=True, **arguments
            )
        except (TypeError, ValueError) as error:
            # The client validates the request before anything is sent.
            raise AgentBadRequest(f"Ollama does not accept the request: {error}") from error
        chat = _StreamedChat(model, call.emit)
        async with aclosing(parts):
            async for part in parts:
                chat.add(part.model_dump())
        answer = chat.answer()
        _check_window(request, answer, window)
        return answer

    async def _window(self, client: AsyncClient, server: Server, model: str, num_ctx: int) -> int:
        """Returns the window in effect, which is never larger than the model's own."""
        from ollama import ResponseError

        key = (server.address, model)
        if key not in self._model_windows:
            sizes: list[Any] = []
            # Not every compatible server supports this; the request itself is the test.
            with suppress(ResponseError, ValueError):
                info = (await client.show(model)).modelinfo or {}
                sizes = [n for name, n in info.items() if name.endswith(".context_length")]
            self._model_windows[key] = token_count(next(iter(sizes), None))
        return min(num_ctx, self._model_windows[key] or num_ctx)

    @property
    def _address(self) -> str:
        return self.base_url or parse_ollama_host(os.environ.get("OLLAMA_HOST", ""))

    def _is_absent(self, error: AgentError) -> bool:
        named = self.base_url or os.environ.get("OLLAMA_HOST")
        return not named and isinstance(error, AgentTransient)

    def _health_hint(self, error: AgentError) -> str:
        unreachable = isinstance(error, AgentTransient)
        return "start it with: ollama serve" if unreachable else super()._health_hint(error)

    async def _model_names(self, server: Server) -> list[str]:
        models = (await _client(server).list()).models
        return [model.model for model in models if model.model]

    def _health_with_models(self, names: list[str]) -> Health:
        model = self.model
        if model is None and len(names) != 1:
            return Health(False, f"{self._address}: {_no_model(names)}")
        if model is None:
            return Health(True, f"{self._address}, model {names[0]}")
        if {model, f"{model}:latest"} & set(names):
            return super()._health_with_models(names)
        detail = f"{self._address} has no model {model}"
        return Health(ready=False, detail=detail, remedy=f"ollama pull {model}")

    def _refusal(self, error: Exception) -> ServerRefusal | None:
        from ollama import ResponseError

        if not isinstance(error, ResponseError):
            return None
        # The client drops the headers, but the error that caused this one still has them.
        response = getattr(error.__context__, "response", None)
        headers: Mapping[str, str] = response.headers if response is not None else {}
        return ServerRefusal(
            error.status_code if error.status_code > 0 else 500, error.error, headers
        )


def _no_model(names: list[str]) -> str:
    """Returns what to do where no model is named and the server has none, or several."""
    if not names:
        return "there is no model; pull one, for example: ollama pull llama3.2"
    return f"no model is set; set `model:` for this agent to one of: {', '.join(sorted(names))}"


def parse_ollama_host(host: str) -> str:
    """Returns the address that OLLAMA_HOST means: a URL, a host, a port or a bind address."""
    text = host.strip()
    if "://" in text:
        return _native(parse_base_url(text))
    parts = urlsplit(f"http://{text}")
    name = parts.hostname or "127.0.0.1"
    name = "127.0.0.1" if name == "0.0.0.0" else name  # noqa: S104  # compared, not bound
    name = f"[{name}]" if ":" in name else name
    return parse_base_url(f"http://{name}:{parts.port or PORT}{parts.path}")


def _native(address: str) -> str:
    """Returns the address of the native API; `/v1` is the one that is compatible with OpenAI."""
    return address.removesuffix("/v1")


class _StreamedChat(StreamedAnswer):
    """Collects a chat message from its parts."""

    def add(self, part: dict[str, Any]) -> None:
        """Adds the next part."""
        self.model = part.get("model") or self.model
        self.add_text((part.get("message") or {}).get("content"))
        if part.get("done"):
            self.finish = part.get("done_reason") or "stop"
            tokens_out = token_count(part.get("eval_count"))
            self.usage = Usage(token_count(part.get("prompt_eval_count")), tokens_out)


def _messages(request: AgentRequest) -> list[dict[str, str]]:
    # The server enforces the schema, but the model does not see it unless it is in the prompt.
    return chat_messages(request.system, with_schema(request.prompt, request.schema))


def _check_window(request: AgentRequest, answer: ModelAnswer, window: int) -> None:
    """Raises when the server cannot have read the whole prompt, or forgot part of it."""
    usage = answer.usage
    if usage is None or usage.tokens_in is None:
        return
    tokens_in = usage.tokens_in
    characters = sum(len(message["content"]) for message in _messages(request))
    minimum = characters // CHARACTERS_PER_TOKEN
    was_cut = minimum > SMALLEST_WINDOW and tokens_in < minimum
    if was_cut or tokens_in >= window or tokens_in + (usage.tokens_out or 0) > window:
        message = (
            f"prompt and answer do not fit the window of {window:,} tokens: Ollama read "
            f"{tokens_in:,} tokens of a prompt of {characters:,} characters; raise num_ctx, or "
            "send less"
        )
        raise with_usage(AgentBadRequest(message), usage)


@lru_cache(maxsize=32)
def _client(server: Server) -> AsyncClient:
    import httpx
    from ollama import AsyncClient

    headers = {"connection": "close"}
    if server.key:
        headers["authorization"] = f"Bearer {server.key}"
    return AsyncClient(
        server.address,
        headers=headers,
        timeout=httpx.Timeout(server.timeout, connect=server.connect_timeout, pool=None),
        **server.http_options(key_headers={"authorization"}),
    )
