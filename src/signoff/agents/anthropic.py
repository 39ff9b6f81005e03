"""Anthropic's models, called through the messages API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from signoff.agents.answer import (
    ModelAnswer,
    StreamedAnswer,
    cached_count,
    sum_of_counts,
    token_count,
    with_schema,
)
from signoff.agents.base import one_of, whole_number
from signoff.agents.failures import ServerRefusal, error_body, server_message
from signoff.agents.http import HttpModel, Server
from signoff.agents.kinds import VENDOR_KEYS
from signoff.core.effects import AgentRequest
from signoff.core.spend import Usage
from signoff.runtime.ports import Call, Capabilities, ModelChoice

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

STRUCTURED = ("tool", "schema", "prompt")
"""A tool the model must use (every model), an output schema (recent ones), or instructions."""

TOOL = "answer"

MIN_CACHED_TOKENS = 1024
"""No model caches less; some need more, and ignore the mark until then."""

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


@dataclass(kw_only=True, eq=False, repr=False)
class AnthropicModel(HttpModel):
    """A model behind the messages API."""

    kind = "anthropic"
    capabilities = Capabilities(
        json_schema=True,
        system_prompt=True,
        streaming=True,
        prompt_caching=True,
        provider="anthropic",
        chat=True,
        model_choice=ModelChoice.REQUIRED,
    )
    label = "the Anthropic API"
    vendor_address = "https://api.anthropic.com"
    vendor_key_env = VENDOR_KEYS["anthropic"]
    reserved_options = frozenset({"model", "messages", "system", "stream", "tools", "tool_choice"})

    structured: str = "tool"
    """One of `STRUCTURED`."""
    max_tokens: int = 8192
    """The longest answer; the API requires a limit."""

    def __post_init__(self) -> None:
        super().__post_init__()
        enforced = one_of("structured", self.structured, STRUCTURED) != "prompt"
        self.capabilities = replace(self.capabilities, json_schema=enforced)
        whole_number("max_tokens", self.max_tokens)

    async def _answer(
        self, server: Server, model: str, request: AgentRequest, call: Call
    ) -> ModelAnswer:
        options = dict(request.options)
        answer_format = self._answer_format(request)
        prompt = with_schema(request.prompt, None if answer_format else request.schema)
        system = {"system": _system(request)} if request.system else {}
        question: Any = {"role": "user", "content": _content(prompt, request)}
        message = _StreamedMessage(model, call.emit)
        stream = await _client(server).messages.create(
            model=model,
            max_tokens=options.pop("max_tokens", self.max_tokens),
            stream=True,
            extra_headers={"Idempotency-Key": call.idempotency_key},
            extra_body={**options, **system, **answer_format},
            messages=[question],
        )
        async with stream:
            async for event in stream:
                message.add(event.model_dump())
        return message.answer()

    def _answer_format(self, request: AgentRequest) -> dict[str, Any]:
        """Returns the options that enforce the schema; they work for objects only."""
        schema = request.schema
        if schema is None or schema.get("type") != "object" or self.structured == "prompt":
            return {}
        if self.structured == "schema":
            config = request.options.get("output_config", {})
            enforced = {"type": "json_schema", "schema": schema}
            return {"output_config": {**config, "format": enforced}}
        tool = {"name": TOOL, "description": "Takes your answer.", "input_schema": schema}
        return {"tools": [tool], "tool_choice": {"type": "tool", "name": TOOL}}

    async def _model_names(self, server: Server) -> list[str]:
        return [model.id async for model in _client(server).models.list(limit=1000)]

    def _refusal(self, error: Exception) -> ServerRefusal | None:
        from anthropic import APIStatusError

        if not isinstance(error, APIStatusError):
            return None
        status = error.status_code
        if status < 300:
            status = _STATUS_BY_TYPE.get(str(error_body(error).get("type")), 500)
        return ServerRefusal(status, server_message(error), error.response.headers)


def _system(request: AgentRequest) -> str | list[dict[str, Any]]:
    """Returns the system prompt, marked for the cache if other requests have the same one."""
    system = request.system or ""
    return [_cached_block(system)] if request.shared and _may_be_cached(system) else system


def _content(prompt: str, request: AgentRequest) -> str | list[dict[str, Any]]:
    """Returns the user's message: the shared part in a block of its own, marked for the cache."""
    # A mark covers everything up to the end of its block, so what requests share needs a block of
    # its own.
    shared, own = prompt[: request.shared], prompt[request.shared :]
    if not shared.strip() or not own.strip() or not _may_be_cached((request.system or "") + shared):
        return prompt
    return [_cached_block(shared), {"type": "text", "text": own}]


def _cached_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}


def _may_be_cached(text: str) -> bool:
    """Returns whether a text can have enough tokens for the cache; a token has at least a byte."""
    return len(text.encode()) >= MIN_CACHED_TOKENS


class _StreamedMessage(StreamedAnswer):
    """Collects a message from its events."""

    def __init__(self, model: str, emit: Callable[[str], None]) -> None:
        super().__init__(model, emit)
        self._stop_reason: str | None = None
        self._counts: dict[str, Any] = {}

    def add(self, event: dict[str, Any]) -> None:
        """Adds the next event."""
        match event.get("type"):
            case "message_start":
                message = event["message"]
                self.session, self.model = message["id"], message["model"]
                self._add_usage(message.get("usage"))
            case "content_block_start":
                self.add_text(event["content_block"].get("text"))
            case "content_block_delta":
                delta = event["delta"]
                self.add_text(delta.get("text") or delta.get("partial_json"))
            case "message_delta":
                self._stop_reason = event["delta"].get("stop_reason") or self._stop_reason
                self._add_usage(event.get("usage"))
            # Only this event ends a message. A stream that breaks off earlier has no reason to
            # stop, and its text is refused.
            case "message_stop":
                self.finish = self._stop_reason
                self.declined = "it gave no reason" if self.finish == "refusal" else ""

    def _add_usage(self, usage: dict[str, Any] | None) -> None:
        self._counts.update({name: n for name, n in (usage or {}).items() if n is not None})
        # This count is of the rest only, without what was read from the cache or written to it.
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        self.usage = Usage(
            sum_of_counts(map(self._counts.get, names)) or None,
            token_count(self._counts.get("output_tokens")),
            tokens_cached=cached_count(self._counts.get("cache_read_input_tokens")),
            tokens_cache_write=cached_count(self._counts.get("cache_creation_input_tokens")),
        )


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
