"""Plays the Responses API, as the codex program uses it."""

import json
from collections.abc import Iterator
from typing import Any

from tests.stubs.vendors.server import Heard, Say, UseTool, VendorStub, event

USAGE = {
    "input_tokens": 12,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 19,
}


class ResponsesStub(VendorStub):
    """Streams responses made of one message or one call of a tool."""

    used_tool = '_output"'

    def wants(self, heard: Heard) -> bool:
        return heard.path.endswith("/responses")

    def stream(self, heard: Heard, turn: Say | UseTool) -> Iterator[str]:
        base = {"id": "resp_stub", "model": heard.body.get("model", "stub"), "output": []}
        item = _item(turn)
        done = {**base, "status": "completed", "output": [item], "usage": USAGE}
        for data in (
            {"type": "response.created", "response": {**base, "status": "in_progress"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": done},
        ):
            yield event(data, str(data["type"]))


def failure(kind: str, message: str, **more: Any) -> dict[str, Any]:
    """Returns the body of a refusal."""
    return {"error": {"type": kind, "message": message, "code": kind, **more}}


def _item(turn: Say | UseTool) -> dict[str, Any]:
    if isinstance(turn, Say):
        part = {"type": "output_text", "text": turn.text, "annotations": []}
        return {"type": "message", "role": "assistant", "id": "msg_stub", "content": [part]}
    call = {"call_id": f"call_{turn.id}", "name": turn.name}
    if "input" in turn.arguments:
        return {"type": "custom_tool_call", "id": f"ctc_{turn.id}", **call, **turn.arguments}
    if turn.name == "tool_search":
        search = {"type": "tool_search_call", "id": f"ts_{turn.id}", "call_id": call["call_id"]}
        return {**search, "execution": "client", "arguments": dict(turn.arguments)}
    given = json.dumps(dict(turn.arguments))
    # Tools of an MCP server are in a namespace of their own.
    space, _, name = turn.name.rpartition(".")
    owner = {"namespace": space, "name": name} if space else {}
    return {"type": "function_call", "id": f"fc_{turn.id}", **call, **owner, "arguments": given}
