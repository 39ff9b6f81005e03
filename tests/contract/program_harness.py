"""Ties a kind of program to one that plays it."""

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
from signoff.testing.agent_harness import (
    Behaviour,
    BreaksOff,
    CutOff,
    Gone,
    Hangs,
    Harness,
    ReceivedRequest,
    Refuses,
    Says,
)

KEY = "zq-Secret-0123456789abcdef"
KEY_ENV = "STUB_MODEL_KEY"
ACT = Path(__file__).parents[1] / "stubs" / "programs" / "act.py"


class ProgramHarness(Harness):
    """Plays claude, which knows every behaviour."""

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
        return self.made(**({} if timeout is None else {"timeout": timeout}))

    def made(self, **options: Any) -> HeadlessAgent:
        return self._make(path=str(self.program), key_env=KEY_ENV, **options)

    async def act(self, *behaviours: Behaviour) -> None:
        written = json.dumps([_plain(behaviour) for behaviour in behaviours])
        await asyncio.to_thread((self._calls / "behaviours.json").write_text, written)

    def asked(self) -> list[ReceivedRequest]:
        return [
            ReceivedRequest(call["prompt"], call["system"], call["model"]) for call in self._all()
        ]

    async def under_way(self) -> int:
        calls = await asyncio.to_thread(self._all)
        return sum(birth_of(call["pid"]) is not None for call in calls)

    def _all(self) -> list[dict[str, Any]]:
        places = sorted(self._calls.glob("[0-9]*.json"), key=lambda place: int(place.stem))
        return [json.loads(place.read_text()) for place in places]


class CommandHarness(ProgramHarness):
    """Plays a program described in the settings."""

    def made(self, **options: Any) -> HeadlessAgent:
        return self._make(
            argv=[str(self.program), "--model", "{model}"],
            model="some",
            answer="json:text",
            usage={"tokens_in": "in", "tokens_out": "out"},
            codes={10: "auth", 11: "quota", 12: "transient", 13: "bad_request"},
            pass_env=[KEY_ENV],
            **options,
        )


def _plain(behaviour: Behaviour) -> dict[str, Any]:
    does = {"does": type(behaviour).__name__}
    match behaviour:
        case Says(text, usage) | CutOff(text, usage):
            return {**does, "text": text, "usage": usage is not None}
        case BreaksOff(text):
            return {**does, "text": text}
        case Hangs(after):
            return {**does, "after": after}
        case Refuses(fault, seconds):
            return {**does, "fault": fault.name, "seconds": seconds}
        case Gone():
            return dict(does)
