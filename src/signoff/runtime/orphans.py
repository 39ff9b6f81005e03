"""Finds processes that no call holds anymore: left behind by a runner that died, or daemons.

The processes of a call or command carry a mark in their environment, which children inherit. It
follows from the effect alone, so the next runner knows it even if the last one died before it
could record the process. Programs that cleared their environment are found as descendants of the
program that was started, as long as that one lives.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import uuid4

from signoff.runtime.ports import Call, idempotency_key

if TYPE_CHECKING:
    import psutil  # type: ignore[import-untyped]  # it brings no types

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
        # It belongs to no run, so no runner resumes it: with one mark, two of them would end
        # each other's programs.
        return uuid4().hex[:16]
    return mark_of(call.run_key, call.step, call.visit, call.step_attempt, call.effect)


async def end_orphans(*marks: str, also: Sequence[psutil.Process] = ()) -> None:
    """Ends the processes with one of the marks, and those in `also`: politely, then for good."""
    left = await asyncio.to_thread(_alive, marks, also)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for _ in range(_LOOKS):
            if not left:
                return
            send(left, number)
            await asyncio.sleep(_LOOK_SECONDS)
            left = await asyncio.to_thread(_alive, marks, also)


def send(processes: Sequence[psutil.Process], number: int) -> None:
    """Signals processes; those that have ended, or belong to another user, are left out."""
    import psutil

    for process in processes:
        with suppress(psutil.Error):
            process.send_signal(number)  # It knows if the number belongs to another one by now.


def descendants(pid: int) -> list[psutil.Process]:
    """Returns the children of a process, their children, and so on."""
    import psutil

    try:
        found: list[psutil.Process] = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []
    return found


def marked(*marks: str) -> list[psutil.Process]:
    """Returns the processes with one of the marks, as far as this user may look at them."""
    import psutil

    wanted = {mark for mark in marks if mark}
    found = []
    for process in psutil.process_iter() if wanted else ():
        with suppress(psutil.Error, OSError):
            if process.environ().get(MARK) in wanted and process.pid != os.getpid():
                found.append(process)
    return found


def _alive(marks: Sequence[str], also: Sequence[psutil.Process]) -> list[psutil.Process]:
    import psutil

    living = marked(*marks)
    for process in also:
        with suppress(psutil.Error):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                living.append(process)
    return living
