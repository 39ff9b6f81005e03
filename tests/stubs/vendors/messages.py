"""Plays the Messages API, as the claude program uses it."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.stubs.vendors.server import Heard, Say, UseTool, VendorStub, event

USAGE = {"input_tokens": 12, "output_tokens": 7}


class MessagesStub(VendorStub):
    """Streams messages made of text or one use of a tool."""

    used_tool = '"tool_result"'

    def wants(self, heard: Heard) -> bool:
        return heard.path.partition("?")[0].endswith("/v1/messages")

    def whole(self, heard: Heard, turn: Say | UseTool) -> Mapping[str, Any]:
        block, stop, _ = _block(turn)
        return {**_head(heard), "content": [block], "stop_reason": stop, "usage": USAGE}

    def stream(self, heard: Heard, turn: Say | UseTool) -> Iterator[str]:
        block, stop, delta = _block(turn)
        empty: dict[str, Any] = {"text": ""} if block["type"] == "text" else {"input": {}}
        opening = {**block, **empty}
        end = {"stop_reason": stop, "stop_sequence": None}
        for data in (
            {"type": "message_start", "message": _head(heard)},
            {"type": "content_block_start", "index": 0, "content_block": opening},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": end, "usage": USAGE},
            {"type": "message_stop"},
        ):
            yield event(data, str(data["type"]))


def failure(kind: str, message: str) -> dict[str, Any]:
    """Returns the body of a refusal."""
    return {"type": "error", "error": {"type": kind, "message": message}}


def _head(heard: Heard) -> dict[str, Any]:
    return {
        "id": "msg_stub",
        "type": "message",
        "role": "assistant",
        "model": heard.body.get("model", "stub"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**USAGE, "output_tokens": 1},
    }


def _block(turn: Say | UseTool) -> tuple[dict[str, Any], str, dict[str, Any]]:
    if isinstance(turn, Say):
        text = {"type": "text", "text": turn.text}
        return text, "end_turn", {"type": "text_delta", "text": turn.text}
    given = dict(turn.arguments)
    tool = {"type": "tool_use", "id": f"toolu_{turn.id}", "name": turn.name, "input": given}
    return tool, "tool_use", {"type": "input_json_delta", "partial_json": json.dumps(given)}
