"""Anthropic's models, called through the messages API."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from signoff.agents.answer import ModelAnswer, StreamedText, token_count
from signoff.agents.http import HttpModel, ModelRequest
from signoff.agents.http_errors import connection_error, redact_line, refusal_error
from signoff.agents.options import one_of, whole_number
from signoff.agents.server import Server
from signoff.agents.structured import with_schema
from signoff.core.spend import Usage
from signoff.errors import AgentError, AgentTransient
from signoff.runtime.ports import Call, Capabilities, ModelChoice

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

STRUCTURED = ("tool", "schema", "prompt")
"""A tool the model must use (every model), an output schema (recent ones), or instructions."""

TOOL = "answer"

_CUT_OFF = frozenset({"max_tokens", "model_context_window_exceeded"})

_STATUS_BY_TYPE = {
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
"""An error within a stream has a type, but the HTTP status of a success."""


class AnthropicModel(HttpModel):
    """A model behind the messages API."""

    kind = "anthropic"
    capabilities = Capabilities(
        json_schema=True,
        system_prompt=True,
        streaming=True,
        model_family="anthropic",
        own_models_only=True,
        model_choice=ModelChoice.REQUIRED,
    )
    client_modules = ("anthropic", "anthropic.resources.messages", "anthropic.resources.models")
    label = "the Anthropic API"
    vendor_address = "https://api.anthropic.com"
    vendor_key_env = "ANTHROPIC_API_KEY"
    reserved_options = frozenset({"model", "messages", "system", "stream", "tools", "tool_choice"})

    def __init__(self, *, structured: str = "tool", max_tokens: int = 8192, **common: Any) -> None:
        """Takes the common options and two more.

        `structured` is tool, schema or prompt. `max_tokens` limits an answer; the API
        requires a limit.
        """
        super().__init__(**common)
        self._structured = one_of("structured", structured, STRUCTURED)
        self.capabilities = replace(self.capabilities, json_schema=structured != "prompt")
        self._max_tokens = whole_number("max_tokens", max_tokens)

    async def _answer(self, server: Server, request: ModelRequest, call: Call) -> ModelAnswer:
        options = dict(request.options)
        answer_format = self._answer_format(request)
        prompt = with_schema(request.prompt, None if answer_format else request.schema)
        system = {"system": request.system} if request.system else {}
        message = _StreamedMessage(request.model, StreamedText(call.emit))
        stream = await _client(server).messages.create(
            model=request.model,
            max_tokens=options.pop("max_tokens", self._max_tokens),
            stream=True,
            extra_headers={"Idempotency-Key": call.idempotency_key},
            extra_body={**options, **system, **answer_format},
            messages=[{"role": "user", "content": prompt}],
        )
        async with stream:
            async for event in stream:
                message.add(event.model_dump())
        return message.answer()

    def _answer_format(self, request: ModelRequest) -> dict[str, Any]:
        """Returns the options that enforce the schema; they work for objects only."""
        schema = request.schema
        if schema is None or schema.get("type") != "object" or self._structured == "prompt":
            return {}
        if self._structured == "schema":
            config = request.options.get("output_config", {})
            enforced = {"type": "json_schema", "schema": schema}
            return {"output_config": {**config, "format": enforced}}
        tool = {"name": TOOL, "description": "Takes your answer.", "input_schema": schema}
        return {"tools": [tool], "tool_choice": {"type": "tool", "name": TOOL}}

    async def _model_names(self, server: Server) -> list[str]:
        return [model.id async for model in _client(server).models.list(limit=1000)]

    def _refusal(self, server: Server, error: Exception) -> AgentError | None:
        from anthropic import APIConnectionError, APIStatusError

        if isinstance(error, APIConnectionError):
            return connection_error(self.label, server.address, error)
        if not isinstance(error, APIStatusError):
            return None
        body = error.body if isinstance(error.body, dict) else {}
        inner = body.get("error")
        inner = inner if isinstance(inner, dict) else {}
        status = error.status_code
        if status < 300:
            status = _STATUS_BY_TYPE.get(str(inner.get("type")), 500)
        parts = [str(inner[key]) for key in ("type", "message") if inner.get(key)]
        text = redact_line(": ".join(parts) or str(error.body or error), server.key)
        return refusal_error(
            self.label, status, text, error.response.headers, remedy=self._key_hint
        )


class _StreamedMessage:
    """Collects a message from its events."""

    def __init__(self, model: str, text: StreamedText) -> None:
        self._text = text
        self._model = model
        self._session: str | None = None
        self._finish: str | None = None
        self._ended = False
        self._usage: dict[str, Any] = {}

    def add(self, event: dict[str, Any]) -> None:
        """Adds the next event."""
        match event.get("type"):
            case "message_start":
                message = event["message"]
                self._session, self._model = message["id"], message["model"]
                self._add_usage(message.get("usage"))
            case "content_block_start":
                self._text.add(event["content_block"].get("text"))
            case "content_block_delta":
                delta = event["delta"]
                self._text.add(delta.get("text") or delta.get("partial_json"))
            case "message_delta":
                self._finish = event["delta"].get("stop_reason") or self._finish
                self._add_usage(event.get("usage"))
            case "message_stop":
                self._ended = True

    def answer(self) -> ModelAnswer:
        """Returns the collected answer; raises `AgentTransient` when its end is missing."""
        if self._finish is None or not self._ended:
            raise AgentTransient("the answer broke off before its end")
        declined = "it gave no reason" if self._finish == "refusal" else ""
        return ModelAnswer(
            self._text.text,
            self._finish,
            cut_off=self._finish in _CUT_OFF,
            declined=declined,
            usage=self._total_usage(),
            session=self._session,
        )

    def _add_usage(self, usage: dict[str, Any] | None) -> None:
        counts = {key: value for key, value in (usage or {}).items() if value is not None}
        self._usage.update(counts)

    def _total_usage(self) -> Usage:
        inputs = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        tokens_in = sum(token_count(self._usage.get(name)) or 0 for name in inputs)
        tokens_out = token_count(self._usage.get("output_tokens"))
        return Usage(tokens_in or None, tokens_out, model=self._model)


@lru_cache(maxsize=32)
def _client(server: Server) -> AsyncAnthropic:
    import anthropic

    options = server.sdk_options(
        anthropic,
        # Releases differ in which of the two headers carries the key.
        key_headers={"authorization", "x-api-key"},
        headers={"anthropic-version", "anthropic-beta"},
    )
    return anthropic.AsyncAnthropic(**options)
