"""Finds processes that nobody holds any more: left behind by a runner that died, or daemons.

The processes of a call or command carry a mark in their environment, which children inherit.
It follows from the effect alone, so whoever takes the run up knows it even when the runner died
before it could record the process. Where the system lets us look (Linux), they are found by it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from signoff.runtime.ports import Call, idempotency_key

MARK = "SIGNOFF_CALL"
"""The variable that carries the mark."""

_LOOK_SECONDS = 0.05
_LOOKS = 100


def mark_of(run_key: str, step: str, visit: int, attempt: int, effect: str) -> str:
    """Returns the mark of an effect's processes, the same in every process that drives the run."""
    return idempotency_key(run_key, step, visit, attempt, effect)[:16]


def call_mark(call: Call) -> str:
    """Returns the mark for the processes of a call or command under way."""
    if not call.run_key:
        # Of no run, so nobody takes it up: marked alike, two such calls would end each other.
        return uuid4().hex[:16]
    return mark_of(call.run_key, call.step, call.visit, call.step_attempt, call.effect)


async def end_strays(*marks: str) -> None:
    """Ends every process that carries one of the marks: politely, then for good."""
    left = await asyncio.to_thread(marked, *marks)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for _ in range(_LOOKS):
            if not left:
                return
            for pid in left:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
            await asyncio.sleep(_LOOK_SECONDS)
            left = await asyncio.to_thread(marked, *marks)


def marked(*marks: str) -> list[int]:
    """Returns who carries one of the marks; nobody where processes cannot be looked at."""
    wanted = {f"{MARK}={mark}".encode() for mark in marks if mark}
    if not wanted:
        return []
    places = Path("/proc").glob("[0-9]*")
    found = [int(place.name) for place in places if not wanted.isdisjoint(_environment(place))]
    return [pid for pid in found if pid != os.getpid()]


def _environment(place: Path) -> list[bytes]:
    try:
        return (place / "environ").read_bytes().split(b"\0")
    except OSError:
        return []  # somebody else's, or gone by now
