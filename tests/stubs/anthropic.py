"""Speaks the messages protocol."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from signoff.core.spend import Usage
from tests.agent_harness import Fault, ReceivedRequest, Refusal, TextReply, TruncatedReply
from tests.stubs.model_server import ErrorResponse, Heard, ModelServer, pieces_of

MODELS = ["stub-large", "stub-small"]

REFUSALS = {
    Fault.QUOTA: (
        400,
        "invalid_request_error",
        "Your credit balance is too low to access the API. Please go to Plans & Billing.",
    ),
    Fault.BUSY: (429, "rate_limit_error", "This request would exceed your rate limit."),
    Fault.DOWN: (529, "overloaded_error", "Overloaded"),
    Fault.NO_MODEL: (404, "not_found_error", "model: x"),
}


MIN_CACHED_TOKENS = 1024


class AnthropicServer(ModelServer):
    """Streams messages made of text, or of one use of the tool that was asked for.

    What a request marks for the cache is in it from the first event of the answer on.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._prefixes: set[str] = set()

    def is_question(self, heard: Heard) -> bool:
        return heard.path == "/v1/messages"

    def question(self, heard: Heard) -> ReceivedRequest:
        (message,) = heard.body["messages"]
        system = heard.body.get("system")
        return ReceivedRequest(
            _text(message["content"]), system and _text(system), heard.body["model"]
        )

    def about(self, heard: Heard) -> tuple[int, Mapping[str, Any]]:
        if not heard.path.startswith("/v1/models"):
            return 404, _error("not_found_error", "Not found")
        if "after_id=" in heard.path:
            return 200, {"data": [], "has_more": False, "first_id": None, "last_id": None}
        day = "2026-01-01T00:00:00Z"
        models = [
            {"type": "model", "id": name, "display_name": name, "created_at": day}
            for name in MODELS
        ]
        ends = {"first_id": MODELS[0], "last_id": MODELS[-1]}
        return 200, {"data": models, "has_more": False, **ends}

    def refusal(self, heard: Heard, refuses: Refusal) -> ErrorResponse:
        key = heard.headers.get("x-api-key") or heard.headers.get("authorization", "")
        auth = (401, "authentication_error", f"invalid x-api-key: {key}")
        status, kind, message = REFUSALS.get(refuses.fault, auth)
        after = {} if refuses.seconds is None else {"retry-after": str(refuses.seconds)}
        return ErrorResponse(status, _error(kind, message), {"request-id": "req_1", **after})

    def stream(self, heard: Heard, says: TextReply | TruncatedReply) -> Iterable[str]:
        forced = heard.body.get("tool_choice", {}).get("name")
        block: dict[str, Any] = {"type": "text", "text": ""}
        if forced:
            block = {"type": "tool_use", "id": "toolu_1", "name": forced, "input": {}}
        usage = {} if says.usage is None else {"output_tokens": says.usage.tokens_out}
        yield _event({"type": "message_start", "message": self._message(heard, says)})
        yield _event({"type": "content_block_start", "index": 0, "content_block": block})
        yield _event({"type": "ping"})
        for piece in pieces_of(says.text):
            delta = {"type": "text_delta", "text": piece}
            if forced:
                delta = {"type": "input_json_delta", "partial_json": piece}
            yield _event({"type": "content_block_delta", "index": 0, "delta": delta})
        yield _event({"type": "content_block_stop", "index": 0})
        stop = (
            "max_tokens"
            if isinstance(says, TruncatedReply)
            else "tool_use"
            if forced
            else "end_turn"
        )
        end = {"stop_reason": stop, "stop_sequence": None}
        yield _event({"type": "message_delta", "delta": end, "usage": usage})
        yield _event({"type": "message_stop"})

    def _message(self, heard: Heard, says: TextReply | TruncatedReply) -> dict[str, Any]:
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": heard.body["model"],
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {} if says.usage is None else self._usage(heard, says.usage),
        }

    def _usage(self, heard: Heard, usage: Usage) -> dict[str, Any]:
        """Returns the counts; `input_tokens` leaves out what was cached."""
        prefix = _marked_prefix(heard.body)
        tokens = len(prefix) // 4 if len(prefix) // 4 >= MIN_CACHED_TOKENS else 0
        read = tokens if prefix in self._prefixes else 0
        self._prefixes.add(prefix)
        return {
            "input_tokens": usage.tokens_in,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": tokens - read,
            "output_tokens": 1,
        }


def _blocks(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _text(content: str | list[dict[str, Any]]) -> str:
    return "".join(block["text"] for block in _blocks(content))


def _marked_prefix(body: Mapping[str, Any]) -> str:
    """Returns everything up to the last block that is marked for the cache."""
    before = marked = json.dumps(body.get("tools", ""))
    for block in [*_blocks(body.get("system", "")), *_blocks(body["messages"][0]["content"])]:
        before += block["text"]
        marked = before if "cache_control" in block else marked
    return marked if marked != json.dumps(body.get("tools", "")) else ""


def _event(data: Mapping[str, Any]) -> str:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n"


def _error(kind: str, message: str) -> dict[str, Any]:
    error = {"type": kind, "message": message}
    return {"type": "error", "error": error, "request_id": "req_1"}
