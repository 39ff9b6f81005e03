"""Speaks Ollama's own protocol, and cuts long prompts as it does."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tests.agent_harness import Fault, ReceivedRequest, Refusal, TextReply, TruncatedReply
from tests.stubs.model_server import ErrorResponse, Heard, ModelServer, pieces_of

MODELS = ["stub-large:latest", "stub-small:1b"]
DAY = "2026-01-01T00:00:00Z"

REFUSALS = {
    Fault.QUOTA: (429, "you've reached your weekly usage limit, please upgrade to continue"),
    Fault.BUSY: (429, "too many concurrent requests"),
    Fault.DOWN: (503, "server busy, please try again. maximum pending requests exceeded"),
    Fault.NO_MODEL: (404, "model 'x' not found"),
}


class OllamaServer(ModelServer):
    """Streams a JSON object per line; the last one counts the tokens."""

    content_type = "application/x-ndjson"
    trained_window: int | None = 1_000_000
    """The model's maximum context window; None for a server that doesn't report it."""
    characters_per_token = 4
    installed: Iterable[str] = MODELS

    def is_question(self, heard: Heard) -> bool:
        return heard.path == "/api/chat"

    def question(self, heard: Heard) -> ReceivedRequest:
        messages = {message["role"]: message["content"] for message in heard.body["messages"]}
        return ReceivedRequest(messages["user"], messages.get("system"), heard.body["model"])

    def about(self, heard: Heard) -> tuple[int, Mapping[str, Any]]:
        if heard.path == "/api/tags":
            return 200, {"models": [_listed(name) for name in self.installed]}
        if heard.path == "/api/show" and self.trained_window:
            window = {"general.architecture": "stub", "stub.context_length": self.trained_window}
            return 200, {"model_info": window, "details": {}, "capabilities": ["completion"]}
        return 404, {"error": "path not found"}

    def refusal(self, heard: Heard, refuses: Refusal) -> ErrorResponse:
        key = heard.headers.get("authorization", "")
        status, message = REFUSALS.get(refuses.fault, (401, f"unauthorized: {key}"))
        after = {} if refuses.seconds is None else {"retry-after": str(refuses.seconds)}
        return ErrorResponse(status, {"error": message}, after)

    def stream(self, heard: Heard, says: TextReply | TruncatedReply) -> Iterable[str]:
        for piece in pieces_of(says.text):
            yield _line(heard, piece, done=False)
        reason = "length" if isinstance(says, TruncatedReply) else "stop"
        times = {"total_duration": 9, "load_duration": 1, "eval_duration": 5}
        yield _line(heard, "", done=True, done_reason=reason, **times, **self._counts(heard, says))

    def _counts(self, heard: Heard, says: TextReply | TruncatedReply) -> dict[str, int | None]:
        if says.usage is None:
            return {}
        sent = sum(len(message["content"]) for message in heard.body["messages"])
        window = min(heard.body["options"]["num_ctx"], self.trained_window or 2048)
        # A long prompt is counted as it is read: cut to the window.
        read = min(sent // self.characters_per_token, window) if sent > 1000 else 0
        return {
            "prompt_eval_count": read or says.usage.tokens_in,
            "eval_count": says.usage.tokens_out,
        }


def _line(heard: Heard, text: str, **more: Any) -> str:
    message = {"role": "assistant", "content": text}
    data = {"model": heard.body["model"], "created_at": DAY, "message": message, **more}
    return json.dumps(data) + "\n"


def _listed(name: str) -> dict[str, Any]:
    details = {"format": "gguf", "family": "stub", "parameter_size": "1B"}
    return {"name": name, "model": name, "modified_at": DAY, "size": 1, "details": details}
