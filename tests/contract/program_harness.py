"""Connects an agent program to a stub of that program."""

import asyncio
import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from signoff.agents.headless import HeadlessAgent
from signoff.runtime.owner import birth_of
from signoff.runtime.ports import Agent
from tests.agent_harness import (
    Behavior,
    BrokenReply,
    Hang,
    Harness,
    ReceivedRequest,
    Refusal,
    TextReply,
    TruncatedReply,
    Unreachable,
)

KEY = "zq-Secret-0123456789abcdef"
KEY_ENV = "STUB_MODEL_KEY"
ACT = Path(__file__).parents[1] / "stubs" / "programs" / "act.py"


class ProgramHarness(Harness):
    """A stub of claude, which supports every behavior."""

    secret = KEY

    def __init__(self, folder: Path, name: str, make: Callable[..., HeadlessAgent]) -> None:
        self._make = make
        self._calls = folder / "calls"
        self._calls.mkdir()
        self.program = folder / name
        words = [sys.executable, "-IS", str(ACT), str(self._calls), name]
        self.program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        self.program.chmod(0o755)

    def agent(self, *, timeout: float | None = None) -> Agent:
        return self.create(**({} if timeout is None else {"timeout": timeout}))

    def create(self, **options: Any) -> HeadlessAgent:
        return self._make(path=str(self.program), key_env=KEY_ENV, **options)

    async def set_behaviors(self, *behaviors: Behavior) -> None:
        written = json.dumps([_plain(behavior) for behavior in behaviors])
        await asyncio.to_thread((self._calls / "behaviors.json").write_text, written)

    def received_requests(self) -> list[ReceivedRequest]:
        return [
            ReceivedRequest(call["prompt"], call["system"], call["model"]) for call in self._all()
        ]

    async def active_calls(self) -> int:
        calls = await asyncio.to_thread(self._all)
        return sum(birth_of(call["pid"]) is not None for call in calls)

    def _all(self) -> list[dict[str, Any]]:
        places = sorted(self._calls.glob("[0-9]*.json"), key=lambda place: int(place.stem))
        return [json.loads(place.read_text()) for place in places]


class CommandHarness(ProgramHarness):
    """A stub of a program that is described in the settings."""

    def create(self, **options: Any) -> HeadlessAgent:
        return self._make(
            argv=[str(self.program), "--model", "{model}"],
            model="some",
            answer="json:text",
            usage={"tokens_in": "in", "tokens_out": "out"},
            codes={10: "auth", 11: "quota", 12: "transient", 13: "bad_request"},
            pass_env=[KEY_ENV],
            **options,
        )


def _plain(behavior: Behavior) -> dict[str, Any]:
    does = {"does": type(behavior).__name__}
    match behavior:
        case TextReply(text, usage) | TruncatedReply(text, usage):
            return {**does, "text": text, "usage": usage is not None}
        case BrokenReply(text):
            return {**does, "text": text}
        case Hang(after):
            return {**does, "after": after}
        case Refusal(fault, seconds):
            return {**does, "fault": fault.name, "seconds": seconds}
        case Unreachable():
            return dict(does)
