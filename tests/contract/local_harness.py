"""Connects the local model to a stub of the library that runs it."""

import json
from pathlib import Path
from typing import Any

from signoff.agents.local import LocalModel
from signoff.runtime.owner import birth_of
from signoff.runtime.ports import Agent
from tests.agent_harness import (
    Behavior,
    BrokenReply,
    Hang,
    Harness,
    ReceivedRequest,
    TextReply,
    TruncatedReply,
)
from tests.patience import whole_lines

RUNNER = Path(__file__).parents[1] / "stubs" / "runner"
"""Where the stand-in is; a process that has it on its path runs scripts for weights."""


class LocalHarness(Harness):
    def __init__(self, folder: Path) -> None:
        self.script = folder / "script.gguf"
        self._log = folder / "script.log"

    def agent(self, *, timeout: float | None = None, **options: Any) -> Agent:
        if timeout is not None:
            options["timeout"] = timeout
        return LocalModel(model=str(self.script), **options)

    async def set_behaviors(self, *behaviors: Behavior) -> None:
        self.play(*(_behavior_json(behavior) for behavior in behaviors))

    def play(self, *ways: dict[str, Any]) -> None:
        self._log.unlink(missing_ok=True)
        self.script.write_text(json.dumps(ways))

    def received_requests(self) -> list[ReceivedRequest]:
        return [_asked(body) for body in self.bodies()]

    def bodies(self) -> list[dict[str, Any]]:
        return [entry["asked"] for entry in self.entries() if "asked" in entry]

    def children(self) -> set[int]:
        return {entry["pid"] for entry in self.entries() if "pid" in entry}

    async def active_calls(self) -> int:
        started = [entry["pid"] for entry in self.entries() if "pid" in entry]
        done = [entry["done"] for entry in self.entries() if "done" in entry]
        return len([pid for pid in started if birth_of(pid) is not None]) - len(done)

    def entries(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in whole_lines(self._log)]


def _behavior_json(behavior: Behavior) -> dict[str, Any]:
    match behavior:
        case TextReply(text, usage) | TruncatedReply(text, usage):
            finish = "length" if isinstance(behavior, TruncatedReply) else "stop"
            counted = [usage.tokens_in, usage.tokens_out] if usage else None
            return {"text": text, "finish": finish, "usage": counted}
        case Hang(after):
            return {"text": after, "hangs": True}
        case BrokenReply(text):
            return {"text": text, "dies": 9}
        case _:
            raise NotImplementedError(f"{behavior} cannot happen to a local model")


def _asked(body: dict[str, Any]) -> ReceivedRequest:
    texts = {message["role"]: message["content"] for message in body["messages"]}
    return ReceivedRequest(texts["user"], texts.get("system"), None)
