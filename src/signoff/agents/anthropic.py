"""Anthropic's models, asked through the messages API."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from signoff.agents.answer import Collected, ModelAnswer, tokens
from signoff.agents.http import HttpModel, ModelRequest
from signoff.agents.http_errors import refused, unreachable, without_secrets
from signoff.agents.server import Server
from signoff.agents.structured import instruction
from signoff.core.spend import Usage
from signoff.errors import AgentError, AgentTransient, ConfigError
from signoff.runtime.ports import Call, Capabilities, ModelChoice

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

STRUCTURED = ("tool", "schema", "prompt")
"""A tool the model must use (every model), an output schema (recent ones), or instructions."""

TOOL = "answer"

_CUT_OFF = frozenset({"max_tokens", "model_context_window_exceeded"})

_STATUS_OF = {
    "authentication_error": 401,
    "billing_error": 402,
    "invalid_request_error": 400,
    "not_found_error": 404,
    "overloaded_error": 529,
    "permission_error": 403,
    "rate_limit_error": 429,
    "request_too_large": 413,
    "timeout_error": 504,
}
"""Inside a stream an error has a type, and the status of a success."""


class AnthropicModel(HttpModel):
    """A model asked through messages."""

    kind = "anthropic"
    capabilities = Capabilities(
        json_schema=True,
        system_prompt=True,
        streaming=True,
        model_family="anthropic",
        own_models_only=True,
        model_choice=ModelChoice.REQUIRED,
    )
    heavy = ("anthropic", "anthropic.resources.messages", "anthropic.resources.models")
    who = "the Anthropic API"
    vendor_address = "https://api.anthropic.com"
    vendor_key_env = "ANTHROPIC_API_KEY"
    reserved = frozenset({"model", "messages", "system", "stream", "tools", "tool_choice"})

    def __init__(self, *, structured: str = "tool", max_tokens: int = 8192, **common: Any) -> None:
        """Takes the options all HTTP models share, and two of its own.

        `structured` is tool, schema or prompt. `max_tokens` bounds an answer; the API insists
        on a bound.
        """
        super().__init__(**common)
        if structured not in STRUCTURED:
            raise ConfigError(
                f"structured is {structured!r}; it is one of: {', '.join(STRUCTURED)}"
            )
        if not isinstance(max_tokens, int) or max_tokens < 1:
            raise ConfigError(f"max_tokens is {max_tokens!r}; it is a whole number from 1")
        self._structured = structured
        self.capabilities = replace(self.capabilities, json_schema=structured != "prompt")
        self._max_tokens = max_tokens

    async def _answer(self, server: Server, question: ModelRequest, call: Call) -> ModelAnswer:
        options = dict(question.options)
        said = _StreamedMessage(question.model, Collected(call.emit))
        stream = await _client(server).messages.create(
            model=question.model,
            max_tokens=options.pop("max_tokens", self._max_tokens),
            stream=True,
            extra_headers={"Idempotency-Key": call.idempotency_key},
            extra_body={**options, **self._system(question), **self._format(question)},
            messages=[{"role": "user", "content": self._prompt(question)}],
        )
        async with stream:
            async for event in stream:
                said.take(event.model_dump())
        return said.answer()

    def _system(self, question: ModelRequest) -> dict[str, Any]:
        return {"system": question.system} if question.system else {}

    def _prompt(self, question: ModelRequest) -> str:
        if question.schema is None or self._format(question):
            return question.prompt
        return f"{question.prompt}\n\n{instruction(question.schema)}"

    def _format(self, question: ModelRequest) -> dict[str, Any]:
        """Returns what holds the model to the schema; only objects can be asked for this way."""
        schema = question.schema
        if schema is None or schema.get("type") != "object" or self._structured == "prompt":
            return {}
        if self._structured == "schema":
            given = question.options.get("output_config", {})
            return {"output_config": {**given, "format": {"type": "json_schema", "schema": schema}}}
        tool = {"name": TOOL, "description": "Takes your answer.", "input_schema": schema}
        return {"tools": [tool], "tool_choice": {"type": "tool", "name": TOOL}}

    async def _names(self, server: Server) -> list[str]:
        return [model.id async for model in _client(server).models.list(limit=1000)]

    def _refusal(self, server: Server, error: Exception) -> AgentError | None:
        from anthropic import APIConnectionError, APIStatusError

        if isinstance(error, APIConnectionError):
            return unreachable(self.who, server.address, error)
        if not isinstance(error, APIStatusError):
            return None
        body = error.body if isinstance(error.body, dict) else {}
        inner = body.get("error")
        inner = inner if isinstance(inner, dict) else {}
        status = error.status_code
        if status < 300:
            status = _STATUS_OF.get(str(inner.get("type")), 500)
        parts = [str(inner[key]) for key in ("type", "message") if inner.get(key)]
        said = without_secrets(": ".join(parts) or str(error.body or error), server.key)
        return refused(self.who, status, said, error.response.headers, remedy=self._remedy)


class _StreamedMessage:
    """What a model says, put together from events."""

    def __init__(self, model: str, text: Collected) -> None:
        self._text = text
        self._model = model
        self._session: str | None = None
        self._finish: str | None = None
        self._ended = False
        self._usage: dict[str, Any] = {}

    def take(self, event: dict[str, Any]) -> None:
        """Takes the next event."""
        match event.get("type"):
            case "message_start":
                message = event["message"]
                self._session, self._model = message["id"], message["model"]
                self._count(message.get("usage"))
            case "content_block_start":
                self._text.add(event["content_block"].get("text"))
            case "content_block_delta":
                delta = event["delta"]
                self._text.add(delta.get("text") or delta.get("partial_json"))
            case "message_delta":
                self._finish = event["delta"].get("stop_reason") or self._finish
                self._count(event.get("usage"))
            case "message_stop":
                self._ended = True

    def answer(self) -> ModelAnswer:
        """Returns it all; raises `AgentTransient` when the end is missing."""
        if self._finish is None or not self._ended:
            raise AgentTransient("the answer broke off before its end")
        declined = "it refused, and gave no reason" if self._finish == "refusal" else ""
        return ModelAnswer(
            self._text.text,
            self._finish,
            cut_off=self._finish in _CUT_OFF,
            declined=declined,
            usage=self._counted(),
            session=self._session,
        )

    def _count(self, usage: dict[str, Any] | None) -> None:
        counts = {key: value for key, value in (usage or {}).items() if value is not None}
        self._usage.update(counts)

    def _counted(self) -> Usage:
        read = [
            self._usage.get(name)
            for name in (
                "input_tokens",
                "cache_creation_input_tokens",
                "cache_read_input_tokens",
            )
        ]
        tokens_in = sum(count for count in map(tokens, read) if count)
        tokens_out = tokens(self._usage.get("output_tokens"))
        return Usage(tokens_in or None, tokens_out, model=self._model)


@lru_cache(maxsize=32)
def _client(server: Server) -> AsyncAnthropic:
    import anthropic

    # Releases differ in which of the two headers carries the key.
    key = {"authorization", "x-api-key"}
    own = {"anthropic-version", "anthropic-beta"}
    return anthropic.AsyncAnthropic(
        api_key=server.key or "none",
        base_url=server.address,
        max_retries=0,
        default_headers={"Connection": "close"},
        http_client=anthropic.DefaultAsyncHttpxClient(
            base_url=server.address,
            timeout=anthropic.Timeout(server.timeout, connect=server.connect_timeout, pool=None),
            # A redirect could take the prompt, and the key, to somebody else.
            follow_redirects=False,
            **server.way,
            event_hooks={"request": [server.guard(carries_key=key, own=own)]},
        ),
    )
