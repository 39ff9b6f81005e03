"""OpenAI's models, and everything that speaks its protocol at another address.

llama.cpp, vLLM, LM Studio and OpenRouter do. They differ in how far a schema binds their
models, so `structured` says what to rely on; the answer is checked in any case.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from signoff.agents.answer import Collected, ModelAnswer, tokens
from signoff.agents.http import HttpModel, ModelRequest
from signoff.agents.http_errors import refused, unreachable, without_secrets
from signoff.agents.server import Server
from signoff.agents.structured import instruction
from signoff.core.spend import Usage
from signoff.errors import AgentError, AgentTransient, ConfigError
from signoff.runtime.ports import Call, Capabilities, ModelChoice

if TYPE_CHECKING:
    from openai import AsyncOpenAI

STRUCTURED = ("schema", "json", "prompt")
"""The server holds the model to the schema, to JSON, or to nothing."""

_NO_KEY = "none"
"""The client insists on one; it is taken out again before anything is sent."""

_STRICT_KEYWORDS = frozenset(
    "$defs $ref additionalProperties anyOf const description enum items properties required "
    "title type".split()
)


class OpenAIModel(HttpModel):
    """A model asked through chat completions."""

    kind = "openai"
    capabilities = Capabilities(
        json_schema=True,
        system_prompt=True,
        streaming=True,
        prompt_caching=True,
        model_family="openai",
        model_choice=ModelChoice.REQUIRED,
    )
    heavy = ("openai", "openai.resources.chat", "openai.resources.models")
    who = "the OpenAI API"
    vendor_address = "https://api.openai.com/v1"
    vendor_key_env = "OPENAI_API_KEY"
    reserved = frozenset({"model", "messages", "stream", "stream_options", "response_format", "n"})

    def __init__(self, *, structured: str = "schema", stream: bool = True, **common: Any) -> None:
        """Takes the options all HTTP models share, and two of its own.

        `structured` is schema, json or prompt. `stream: false` is for servers that cannot.
        """
        super().__init__(**common)
        if structured not in STRUCTURED:
            raise ConfigError(
                f"structured is {structured!r}; it is one of: {', '.join(STRUCTURED)}"
            )
        self._structured = structured
        self._stream = stream
        self.capabilities = replace(
            self.capabilities, json_schema=structured == "schema", streaming=stream
        )
        if self._base_url is not None:
            self.who = "the model server"

    async def _answer(self, server: Server, question: ModelRequest, call: Call) -> ModelAnswer:
        client = _client(server)
        said = _StreamedCompletion(question.model, Collected(call.emit), server)
        headers = {"Idempotency-Key": call.idempotency_key}
        asked: dict[str, Any] = {"model": question.model, "messages": self._messages(question)}
        if question.schema is not None:
            asked.update(_response_format(question.schema, self._structured))
        # Options go through the body, unchecked: compatible servers have words of their own.
        if not self._stream:
            whole = await client.chat.completions.create(
                **asked, extra_headers=headers, extra_body=question.options
            )
            said.take(whole.model_dump())
            return said.answer()
        asked.update(stream=True, stream_options={"include_usage": True})
        stream = await client.chat.completions.create(
            **asked, extra_headers=headers, extra_body=question.options
        )
        async with stream:
            async for chunk in stream:
                said.take(chunk.model_dump())
        return said.answer()

    def _messages(self, question: ModelRequest) -> list[dict[str, str]]:
        prompt = question.prompt
        if question.schema is not None and not _held(question.schema, self._structured):
            prompt = f"{prompt}\n\n{instruction(question.schema)}"
        system = [{"role": "system", "content": question.system}] if question.system else []
        return [*system, {"role": "user", "content": prompt}]

    async def _names(self, server: Server) -> list[str]:
        return [model.id async for model in _client(server).models.list()]

    def _refusal(self, server: Server, error: Exception) -> AgentError | None:
        from openai import APIConnectionError, APIError

        if isinstance(error, APIConnectionError):
            return unreachable(self.who, server.address, error)
        if not isinstance(error, APIError):
            return None
        said = without_secrets(_words(error), server.key)
        response = getattr(error, "response", None)
        if response is None:
            # Inside a stream, the status has been sent already: the error's code has to do.
            code = str(error.code)
            status = int(code) if code.isdigit() else 500
            return refused(self.who, status, said, {}, remedy=self._remedy)
        return refused(self.who, response.status_code, said, response.headers, remedy=self._remedy)


class _StreamedCompletion:
    """What a model says, put together from chunks or taken whole."""

    def __init__(self, model: str, text: Collected, server: Server) -> None:
        self._text = text
        self._declined: list[str] = []
        self._finish: str | None = None
        self._model = model
        self._usage: dict[str, Any] = {}
        self._session: str | None = None
        self._server = server

    def take(self, chunk: dict[str, Any]) -> None:
        """Takes a chunk, or a whole completion."""
        self._session = chunk.get("id") or self._session
        self._model = chunk.get("model") or self._model
        self._usage = chunk.get("usage") or self._usage
        for choice in (chunk.get("choices") or [])[:1]:
            message = choice.get("delta") or choice.get("message") or {}
            self._text.add(message.get("content"))
            self._declined.append(message.get("refusal") or "")
            self._finish = choice.get("finish_reason") or self._finish

    def answer(self) -> ModelAnswer:
        """Returns it all; raises `AgentTransient` when the end is missing."""
        if self._finish in {None, "error"}:
            raise AgentTransient("the answer broke off before its end")
        declined = "".join(self._declined)
        if self._finish == "content_filter":
            declined = declined or "its content filter stepped in"
        return ModelAnswer(
            self._text.text,
            self._finish,
            cut_off=self._finish == "length",
            declined=declined,
            usage=self._counted(),
            session=self._session,
        )

    def _counted(self) -> Usage:
        cost = self._usage.get("cost")
        dollars = _bills_in_dollars(self._server) and isinstance(cost, int | float)
        return Usage(
            tokens(self._usage.get("prompt_tokens")),
            tokens(self._usage.get("completion_tokens")),
            float(cost) if dollars else None,  # type: ignore[arg-type]  # a number, by the line above
            self._model,
        )


@lru_cache(maxsize=32)
def _client(server: Server) -> AsyncOpenAI:
    import openai

    return openai.AsyncOpenAI(
        api_key=server.key or _NO_KEY,
        base_url=server.address,
        max_retries=0,
        default_headers={"Connection": "close"},
        http_client=openai.DefaultAsyncHttpxClient(
            base_url=server.address,
            timeout=openai.Timeout(server.timeout, connect=server.connect_timeout, pool=None),
            # A redirect could take the prompt to somebody else.
            follow_redirects=False,
            **server.way,
            event_hooks={"request": [server.guard(carries_key={"authorization"})]},
        ),
    )


def _response_format(schema: dict[str, Any], structured: str) -> dict[str, Any]:
    if _held(schema, structured):
        named = {"name": "answer", "schema": schema, "strict": _is_strict(schema)}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    if structured == "prompt" or schema.get("type") != "object":
        return {}
    return {"response_format": {"type": "json_object"}}


def _held(schema: dict[str, Any], structured: str) -> bool:
    """Tells whether the server is to hold the model to the schema; only objects can be."""
    return structured == "schema" and schema.get("type") == "object"


def _is_strict(schema: Any) -> bool:
    """Tells whether a schema keeps to what OpenAI guarantees; it refuses others as strict."""
    if isinstance(schema, list):
        return all(map(_is_strict, schema))
    if not isinstance(schema, dict):
        return True
    if set(schema) - _STRICT_KEYWORDS:
        return False
    named = schema.get("properties", {})
    if schema.get("type") == "object" or named:
        whole = schema.get("additionalProperties") is False
        if not whole or set(schema.get("required", [])) != set(named):
            return False
    inner = [*named.values(), *schema.get("$defs", {}).values(), *schema.get("anyOf", [])]
    return _is_strict([*inner, schema.get("items")])


def _words(error: Any) -> str:
    """Returns what the server said, without the client's dump of the whole body."""
    body = error.body
    if isinstance(body, dict):
        inner = body.get("error")
        body = inner if isinstance(inner, dict) else body
        said = [str(body[key]) for key in ("code", "type", "message") if body.get(key)]
        return ": ".join(said) or str(error)
    return str(body or error)


def _bills_in_dollars(server: Server) -> bool:
    """Tells whether the server reports costs, and in dollars."""
    return (urlsplit(server.address).hostname or "").endswith("openrouter.ai")
