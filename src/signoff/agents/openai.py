"""OpenAI's models, and every other server that speaks its protocol.

llama.cpp, vLLM, LM Studio and OpenRouter do. They differ in how well they enforce a schema,
so `structured` selects the method; the answer is validated in any case.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from signoff.agents.answer import ModelAnswer, StreamedText
from signoff.agents.chat_completion import ChatCompletion, chat_messages
from signoff.agents.http import HttpModel, ModelRequest
from signoff.agents.http_errors import connection_error, redact_line, refusal_error
from signoff.agents.options import one_of
from signoff.agents.server import Server
from signoff.agents.structured import with_schema
from signoff.errors import AgentError, AgentTransient
from signoff.runtime.ports import Call, Capabilities, ModelChoice

if TYPE_CHECKING:
    from openai import AsyncOpenAI

STRUCTURED = ("schema", "json", "prompt")
"""The server enforces the schema, valid JSON, or nothing."""

_STRICT_KEYWORDS = frozenset(
    "$defs $ref additionalProperties anyOf const description enum items properties required "
    "title type".split()
)


class OpenAIModel(HttpModel):
    """A model behind the chat completions API."""

    kind = "openai"
    capabilities = Capabilities(
        json_schema=True,
        system_prompt=True,
        streaming=True,
        prompt_caching=True,
        model_family="openai",
        model_choice=ModelChoice.REQUIRED,
    )
    client_modules = ("openai", "openai.resources.chat", "openai.resources.models")
    label = "the OpenAI API"
    vendor_address = "https://api.openai.com/v1"
    vendor_key_env = "OPENAI_API_KEY"
    reserved_options = frozenset(
        {"model", "messages", "stream", "stream_options", "response_format", "n"}
    )

    def __init__(self, *, structured: str = "schema", stream: bool = True, **common: Any) -> None:
        """Takes the common options and two more.

        `structured` is schema, json or prompt. `stream: false` is for servers that cannot
        stream.
        """
        super().__init__(**common)
        self._structured = one_of("structured", structured, STRUCTURED)
        self._stream = stream
        self.capabilities = replace(
            self.capabilities, json_schema=structured == "schema", streaming=stream
        )
        if self._base_url is not None:
            self.label = "the model server"

    async def _answer(self, server: Server, request: ModelRequest, call: Call) -> ModelAnswer:
        completion = ChatCompletion(request.model, StreamedText(call.emit))
        in_prompt = None if _is_enforced(request.schema, self._structured) else request.schema
        arguments: dict[str, Any] = {
            "model": request.model,
            "messages": chat_messages(request.system, with_schema(request.prompt, in_prompt)),
            "extra_headers": {"Idempotency-Key": call.idempotency_key},
            # Options go into the body unchecked: compatible servers have their own.
            "extra_body": request.options,
            **_response_format(request.schema, self._structured),
        }
        completions = _client(server).chat.completions
        if self._stream:
            arguments.update(stream=True, stream_options={"include_usage": True})
            stream = await completions.create(**arguments)
            async with stream:
                async for chunk in stream:
                    completion.add(chunk.model_dump())
        else:
            whole = await completions.create(**arguments)
            completion.add(whole.model_dump())
        if completion.finish in {None, "error"}:
            raise AgentTransient("the answer broke off before its end")
        return completion.answer(_reported_cost(server, completion.usage))

    async def _model_names(self, server: Server) -> list[str]:
        return [model.id async for model in _client(server).models.list()]

    def _refusal(self, server: Server, error: Exception) -> AgentError | None:
        from openai import APIConnectionError, APIError

        if isinstance(error, APIConnectionError):
            return connection_error(self.label, server.address, error)
        if not isinstance(error, APIError):
            return None
        text = redact_line(_error_text(error), server.key)
        response = getattr(error, "response", None)
        if response is None:
            # Within a stream the HTTP status was sent before the error, so its code is used.
            code = str(error.code)
            status = int(code) if code.isdigit() else 500
            return refusal_error(self.label, status, text, {}, remedy=self._key_hint)
        return refusal_error(
            self.label, response.status_code, text, response.headers, remedy=self._key_hint
        )


@lru_cache(maxsize=32)
def _client(server: Server) -> AsyncOpenAI:
    import openai

    return openai.AsyncOpenAI(**server.sdk_options(openai, key_headers={"authorization"}))


def _response_format(schema: dict[str, Any] | None, structured: str) -> dict[str, Any]:
    if _is_enforced(schema, structured):
        named = {"name": "answer", "schema": schema, "strict": _is_strict(schema)}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    if schema is None or structured == "prompt" or schema.get("type") != "object":
        return {}
    return {"response_format": {"type": "json_object"}}


def _is_enforced(schema: dict[str, Any] | None, structured: str) -> bool:
    """Returns whether the server enforces the schema; it can do so for objects only."""
    return schema is not None and structured == "schema" and schema.get("type") == "object"


def _is_strict(schema: Any) -> bool:
    """Returns whether a schema uses only what OpenAI's strict mode accepts."""
    if isinstance(schema, list):
        return all(map(_is_strict, schema))
    if not isinstance(schema, dict):
        return True
    if set(schema) - _STRICT_KEYWORDS:
        return False
    properties = schema.get("properties", {})
    if schema.get("type") == "object" or properties:
        closed = schema.get("additionalProperties") is False
        if not closed or set(schema.get("required", [])) != set(properties):
            return False
    inner = [*properties.values(), *schema.get("$defs", {}).values(), *schema.get("anyOf", [])]
    return _is_strict([*inner, schema.get("items")])


def _error_text(error: Any) -> str:
    """Returns the server's message, without the client's dump of the whole body."""
    body = error.body
    if isinstance(body, dict):
        inner = body.get("error")
        body = inner if isinstance(inner, dict) else body
        parts = [str(body[key]) for key in ("code", "type", "message") if body.get(key)]
        return ": ".join(parts) or str(error)
    return str(body or error)


def _reported_cost(server: Server, usage: dict[str, Any]) -> float | None:
    """Returns the cost in dollars; only OpenRouter is known to report it in dollars."""
    cost = usage.get("cost")
    in_dollars = (urlsplit(server.address).hostname or "").endswith("openrouter.ai")
    return float(cost) if in_dollars and isinstance(cost, int | float) else None
