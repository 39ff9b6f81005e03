"""OpenAI's models, and every other server that speaks its protocol.

llama.cpp, vLLM, LM Studio and OpenRouter do. They differ in how well they enforce a schema,
so `structured` selects the method; the answer is validated in any case.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from signoff.agents.answer import ChatCompletion, ModelAnswer, chat_messages, is_strict, with_schema
from signoff.agents.base import one_of
from signoff.agents.failures import ServerRefusal, server_message
from signoff.agents.http import HttpModel, Server
from signoff.agents.kinds import VENDOR_KEYS
from signoff.core.effects import AgentRequest
from signoff.runtime.ports import Call, Capabilities, ModelChoice

if TYPE_CHECKING:
    from openai import AsyncOpenAI

STRUCTURED = ("schema", "json", "prompt")
"""The server enforces the schema, valid JSON, or nothing."""


@dataclass(kw_only=True, eq=False, repr=False)
class OpenAIModel(HttpModel):
    """A model behind the chat completions API."""

    kind = "openai"
    capabilities = Capabilities(
        json_schema=True,
        system_prompt=True,
        streaming=True,
        prompt_caching=True,
        provider="openai",
        chat=True,
        model_choice=ModelChoice.REQUIRED,
    )
    label = "the OpenAI API"
    vendor_address = "https://api.openai.com/v1"
    vendor_key_env = VENDOR_KEYS["openai"]
    reserved_options = frozenset(
        {"model", "messages", "stream", "stream_options", "response_format", "n"}
    )

    structured: str = "schema"
    """One of `STRUCTURED`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        enforced = one_of("structured", self.structured, STRUCTURED) == "schema"
        self.capabilities = replace(self.capabilities, json_schema=enforced)
        if self.base_url is not None:
            self.label = "the model server"

    async def _answer(
        self, server: Server, model: str, request: AgentRequest, call: Call
    ) -> ModelAnswer:
        completion = ChatCompletion(model, call.emit)
        in_prompt = None if _is_enforced(request.schema, self.structured) else request.schema
        arguments: dict[str, Any] = {
            "model": model,
            "messages": chat_messages(request.system, with_schema(request.prompt, in_prompt)),
            "extra_headers": {"Idempotency-Key": call.idempotency_key},
            # Options go into the body unchecked: compatible servers have their own.
            "extra_body": request.options,
            "stream": True,
            "stream_options": {"include_usage": True},
            **_response_format(request.schema, self.structured),
        }
        completions = _client(server).chat.completions
        stream = await completions.create(**arguments)
        async with stream:
            async for chunk in stream:
                completion.add(chunk.model_dump())
        # Other servers report a cost in units of their own.
        in_dollars = (urlsplit(server.address).hostname or "").endswith("openrouter.ai")
        cost = completion.cost if in_dollars else None
        return completion.answer(cost if isinstance(cost, int | float) else None)

    async def _model_names(self, server: Server) -> list[str]:
        return [model.id async for model in _client(server).models.list()]

    def _refusal(self, error: Exception) -> ServerRefusal | None:
        from openai import APIConnectionError, APIError

        if not isinstance(error, APIError) or isinstance(error, APIConnectionError):
            return None
        response = getattr(error, "response", None)
        if response is not None:
            return ServerRefusal(response.status_code, server_message(error), response.headers)
        # Within a stream the HTTP status was sent before the error, so its code is used.
        code = str(error.code)
        return ServerRefusal(int(code) if code.isdigit() else 500, server_message(error))


@lru_cache(maxsize=32)
def _client(server: Server) -> AsyncOpenAI:
    import openai

    return openai.AsyncOpenAI(**server.sdk_options(openai, key_headers={"authorization"}))


def _response_format(schema: dict[str, Any] | None, structured: str) -> dict[str, Any]:
    if _is_enforced(schema, structured):
        # A strict schema with one keyword that the vendor does not know is refused as a whole.
        # Without `strict` the server does its best, and the answer is validated in any case.
        named = {"name": "answer", "schema": schema, "strict": is_strict(schema)}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    # This mode accepts objects only; for a list it would make the model wrap its answer.
    if schema is None or structured == "prompt" or schema.get("type") != "object":
        return {}
    return {"response_format": {"type": "json_object"}}


def _is_enforced(schema: dict[str, Any] | None, structured: str) -> bool:
    """Returns whether the server enforces the schema; it can do so for objects only."""
    return schema is not None and structured == "schema" and schema.get("type") == "object"
