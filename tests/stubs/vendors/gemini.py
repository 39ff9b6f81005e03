"""Plays the Gemini API, as the gemini program uses it."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.stubs.vendors.server import Heard, Say, UseTool, VendorStub, event

USAGE = {"promptTokenCount": 12, "candidatesTokenCount": 7, "totalTokenCount": 19}


class GeminiStub(VendorStub):
    """Generates content made of text or one call of a function."""

    used_tool = '"functionResponse"'

    def wants(self, heard: Heard) -> bool:
        return "enerateContent" in heard.path

    def streams(self, heard: Heard) -> bool:
        return ":streamGenerateContent" in heard.path

    def whole(self, heard: Heard, turn: Say | UseTool) -> Mapping[str, Any]:
        if isinstance(turn, Say):
            part: dict[str, Any] = {"text": turn.text}
        else:
            part = {"functionCall": {"name": turn.name, "args": dict(turn.arguments)}}
        content = {"role": "model", "parts": [part]}
        return {
            "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
            "usageMetadata": USAGE,
        }

    def stream(self, heard: Heard, turn: Say | UseTool) -> Iterator[str]:
        yield event(self.whole(heard, turn))


def failure(status: int, kind: str, message: str) -> dict[str, Any]:
    """Returns the body of a refusal."""
    return {"error": {"code": status, "message": message, "status": kind}}
