"""Models served by Ollama, asked through its own API.

Its OpenAI-compatible route ignores `num_ctx`, and either route cuts a prompt that does not
fit without a word. So the native one is used, the window is always stated, and the number
of tokens the server read is compared with what was sent.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import aclosing
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from signoff.agents.answer import Collected, ModelAnswer, tokens
from signoff.agents.base import Health
from signoff.agents.http import HttpModel, ModelRequest
from signoff.agents.http_errors import refused, without_secrets
from signoff.agents.server import Server, checked_address
from signoff.agents.structured import instruction
from signoff.core.spend import Usage
from signoff.errors import AgentBadRequest, AgentError, AgentTransient, ConfigError
from signoff.runtime.effect_errors import with_usage
from signoff.runtime.ports import Call, Capabilities, ModelChoice

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ollama import AsyncClient, ChatResponse

PORT = 11434

CHARACTERS_PER_TOKEN = 8
"""Fewer tokens than this makes of a prompt means that part of it was never read: tokenisers
get 3 to 5 characters into one, and twice that only from blanks and repetitions."""

SMALLEST_WINDOW = 512
"""Tokens every model can read; a prompt that small is never cut."""

_OUTSIDE_OPTIONS = frozenset({"think", "keep_alive"})
"""Options of the request itself; all others are the model's."""


class OllamaModel(HttpModel):
    """A model asked through /api/chat."""

    kind = "ollama"
    capabilities = Capabilities(
        json_schema=True,
        system_prompt=True,
        streaming=True,
        free=True,
        model_choice=ModelChoice.INSTALLED,
    )
    heavy = ("ollama",)
    who = "Ollama"
    vendor_address = f"http://127.0.0.1:{PORT}"
    vendor_key_env = None
    reserved = frozenset({"model", "messages", "stream", "format", "tools"})

    def __init__(self, *, num_ctx: int = 8192, **common: Any) -> None:
        """Takes the options all HTTP models share, and the size of the window in tokens."""
        super().__init__(**common)
        if not isinstance(num_ctx, int) or num_ctx < 1:
            raise ConfigError(f"num_ctx is {num_ctx!r}; it is a whole number of tokens")
        self._num_ctx = num_ctx
        self._windows: dict[tuple[str, str], int | None] = {}
        """How much each model can read at all, once it was asked."""

    async def _answer(self, server: Server, question: ModelRequest, call: Call) -> ModelAnswer:
        client = _client(server)
        options = {"num_ctx": self._num_ctx, **question.options}
        asked = tokens(options["num_ctx"])
        if asked is None:
            raise AgentBadRequest(f"num_ctx is {options['num_ctx']!r}; it is a number of tokens")
        window = await self._window(client, server, question.model, asked)
        said = _StreamedChat(question.model, Collected(call.emit))
        async with aclosing(await _parts(client, question, options)) as parts:
            async for part in parts:
                said.take(part.model_dump())
        answer = said.answer()
        _check_window(question, answer, window)
        return answer

    async def _window(self, client: AsyncClient, server: Server, model: str, asked: int) -> int:
        """Returns the window that holds: a model with a smaller one is not given more."""
        from ollama import ResponseError

        place = (server.address, model)
        if place not in self._windows:
            try:
                shown = await client.show(model)
            except (ResponseError, ValueError):
                # Not every server that speaks this API can tell; the question itself will.
                self._windows[place] = None
            else:
                self._windows[place] = _trained_window(shown.modelinfo or {})
        return min(asked, self._windows[place] or asked)

    @property
    def _address(self) -> str:
        return self._base_url or address_from(os.environ.get("OLLAMA_HOST", ""))

    def _cure(self, error: AgentError) -> str:
        unreached = isinstance(error, AgentTransient)
        return "start it with: ollama serve" if unreached else super()._cure(error)

    async def _names(self, server: Server) -> list[str]:
        listed = (await _client(server).list()).models
        return [model.model for model in listed if model.model]

    def _judged_health(self, names: list[str]) -> Health:
        model = self._model
        if model is None or {model, f"{model}:latest"} & set(names):
            return super()._judged_health(names)
        detail = f"{self._address} has no model {model}"
        return Health(ready=False, detail=detail, remedy=f"ollama pull {model}")

    def _refusal(self, server: Server, error: Exception) -> AgentError | None:
        from ollama import RequestError, ResponseError

        if isinstance(error, RequestError):
            return AgentBadRequest(f"Ollama cannot be asked this: {error.error}")
        if not isinstance(error, ResponseError):
            return None
        # The client drops the headers, but the error it was made from still has them.
        response = getattr(error.__context__, "response", None)
        headers: Mapping[str, str] = response.headers if response is not None else {}
        status = error.status_code if error.status_code > 0 else 500
        said = without_secrets(str(error.error), server.key)
        return refused(self.who, status, said, headers, remedy=self._remedy)


def address_from(host: str) -> str:
    """Returns the address OLLAMA_HOST means; it may be a name, a port, or where a server binds."""
    if not host.strip():
        return OllamaModel.vendor_address
    text = host.strip()
    if "://" in text:
        return checked_address(text)
    parts = urlsplit(f"http://{text}")
    name = parts.hostname or "127.0.0.1"
    name = "127.0.0.1" if name == "0.0.0.0" else name  # noqa: S104  # compared, not bound
    name = f"[{name}]" if ":" in name else name
    return checked_address(f"http://{name}:{parts.port or PORT}{parts.path}")


class _StreamedChat:
    """What a model says, put together from its parts."""

    def __init__(self, model: str, text: Collected) -> None:
        self._text = text
        self._model = model
        self._last: dict[str, Any] = {}

    def take(self, part: dict[str, Any]) -> None:
        """Takes the next part."""
        self._model = part.get("model") or self._model
        self._text.add((part.get("message") or {}).get("content"))
        if part.get("done"):
            self._last = part

    def answer(self) -> ModelAnswer:
        """Returns it all; raises `AgentTransient` when the end is missing."""
        if not self._last:
            raise AgentTransient("the answer broke off before its end")
        finish = self._last.get("done_reason") or "stop"
        usage = Usage(
            tokens(self._last.get("prompt_eval_count")),
            tokens(self._last.get("eval_count")),
            model=self._model,
        )
        return ModelAnswer(self._text.text, finish, cut_off=finish == "length", usage=usage)


async def _parts(
    client: AsyncClient, question: ModelRequest, options: dict[str, Any]
) -> AsyncGenerator[ChatResponse]:
    outside = {name: options.pop(name) for name in _OUTSIDE_OPTIONS & set(options)}
    try:
        chat = await client.chat(
            question.model,
            _messages(question),
            format=question.schema,
            options=options,
            stream=True,
            **outside,
        )
    except (TypeError, ValueError) as error:
        # The client checks the request before anything is sent.
        raise AgentBadRequest(f"Ollama cannot be asked this: {error}") from error
    return cast("AsyncGenerator[ChatResponse]", chat)


def _messages(question: ModelRequest) -> list[dict[str, str]]:
    prompt = question.prompt
    if question.schema is not None:
        # The server holds the model to the form, but does not tell it the form's meaning.
        prompt = f"{prompt}\n\n{instruction(question.schema)}"
    system = [{"role": "system", "content": question.system}] if question.system else []
    return [*system, {"role": "user", "content": prompt}]


def _check_window(question: ModelRequest, answer: ModelAnswer, window: int) -> None:
    """Raises when the server cannot have read all that was sent, or forgot it while answering."""
    usage = answer.usage
    read = usage.tokens_in if usage else None
    if usage is None or read is None:
        return
    sent = sum(len(message["content"]) for message in _messages(question))
    fewest = sent // CHARACTERS_PER_TOKEN
    if (fewest > SMALLEST_WINDOW and read < fewest) or read >= window:
        raise with_usage(
            AgentBadRequest(
                f"Ollama read only {read:,} tokens of a prompt of {sent:,} characters: it does "
                f"not fit the window of {window:,}; raise num_ctx, or send less"
            ),
            usage,
        )
    if read + (usage.tokens_out or 0) > window:
        raise with_usage(
            AgentBadRequest(
                f"prompt and answer outgrew the window of {window:,} tokens, so the model forgot "
                "the beginning; raise num_ctx, or ask for less"
            ),
            usage,
        )


def _trained_window(info: Mapping[str, Any]) -> int | None:
    sizes = [value for name, value in info.items() if name.endswith(".context_length")]
    return tokens(sizes[0]) if sizes else None


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
        follow_redirects=False,
        **server.way,
        event_hooks={"request": [server.guard(carries_key={"authorization"})]},
    )
