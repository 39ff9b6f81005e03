"""Speaks the chat completions protocol, as OpenAI and compatible servers do."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tests.agent_harness import Fault, ReceivedRequest, Refusal, TextReply, TruncatedReply
from tests.stubs.model_server import ErrorResponse, Heard, ModelServer, pieces_of

MODELS = ["stub-large", "stub-small"]


class OpenAIServer(ModelServer):
    """Streams completions."""

    def is_question(self, heard: Heard) -> bool:
        return heard.path == "/v1/chat/completions"

    def question(self, heard: Heard) -> ReceivedRequest:
        messages = {message["role"]: message["content"] for message in heard.body["messages"]}
        return ReceivedRequest(messages["user"], messages.get("system"), heard.body["model"])

    def about(self, heard: Heard) -> tuple[int, Mapping[str, Any]]:
        if heard.path != "/v1/models":
            return 404, _error("Unknown path", "invalid_request_error")
        models = [{"id": name, "object": "model", "created": 1, "owned_by": "x"} for name in MODELS]
        return 200, {"object": "list", "data": models}

    def refusal(self, heard: Heard, refuses: Refusal) -> ErrorResponse:
        key = heard.headers.get("authorization", "").removeprefix("Bearer ")
        status, body = {
            Fault.AUTH: (
                401,
                _error(
                    f"Incorrect API key provided: {key}.",
                    "invalid_request_error",
                    "invalid_api_key",
                ),
            ),
            Fault.QUOTA: (
                429,
                _error(
                    "You exceeded your current quota, please check your plan and billing details.",
                    "insufficient_quota",
                    "insufficient_quota",
                ),
            ),
            Fault.BUSY: (
                429,
                _error(
                    "Rate limit reached for stub on tokens per min (TPM): Limit 30000.",
                    "tokens",
                    "rate_limit_exceeded",
                ),
            ),
            Fault.DOWN: (
                500,
                _error("The server had an error while processing your request.", "server_error"),
            ),
            Fault.NO_MODEL: (
                404,
                _error(
                    "The model `x` does not exist or you do not have access to it.",
                    "invalid_request_error",
                    "model_not_found",
                ),
            ),
        }[refuses.fault]
        after = {} if refuses.seconds is None else {"retry-after": str(refuses.seconds)}
        return ErrorResponse(status, body, {"x-request-id": "req_1", **after})

    def stream(self, heard: Heard, says: TextReply | TruncatedReply) -> Iterable[str]:
        yield _event(self._chunk(heard, {"role": "assistant", "content": "", "refusal": None}))
        for piece in pieces_of(says.text):
            yield _event(self._chunk(heard, {"content": piece}))
        yield _event(self._chunk(heard, {}, _finish(says)))
        if says.usage is not None and heard.body.get("stream_options", {}).get("include_usage"):
            end = self._chunk(heard, {})
            yield _event({**end, "choices": [], "usage": self._usage(says)})
        yield "data: [DONE]\n\n"

    def _chunk(
        self, heard: Heard, delta: Mapping[str, Any], finish: str | None = None
    ) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**_head(heard, "chat.completion.chunk"), "choices": [choice]}

    def _usage(self, says: TextReply | TruncatedReply) -> dict[str, Any]:
        usage = says.usage
        assert usage is not None
        counted = {"prompt_tokens": usage.tokens_in, "completion_tokens": usage.tokens_out}
        # The cached tokens are a part of the prompt's.
        details = {"prompt_tokens_details": {"cached_tokens": usage.tokens_cached or 0}}
        return {**counted, "total_tokens": usage.tokens, **details}


def _head(heard: Heard, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": heard.body["model"]}


def _finish(says: TextReply | TruncatedReply) -> str:
    return "length" if isinstance(says, TruncatedReply) else "stop"


def _event(data: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(data)}\n\n"


def _error(message: str, kind: str, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
