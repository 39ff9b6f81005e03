"""Finds orphans: processes that a dead runner left behind, and daemons that left their group.

The processes of a call or command carry a mark in their environment, which children inherit. How
it begins follows from the effect alone, so the next runner knows it even if the last one died
before it could record the process. How it ends is random: a runner that was stopped and has lost
its run must not end what the next one has started for the same effect. Programs that cleared their
environment are found as descendants of the program that was started, as long as that one lives.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterable, Iterator
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
    """Returns how the marks of an effect's processes begin, whoever drives the run."""
    return idempotency_key(run_key, step, visit, attempt, effect)[:16]


def call_mark(call: Call) -> str:
    """Returns a new mark for the processes of a call or command."""
    own = uuid4().hex[:16]
    if not call.run_key:
        # It belongs to no run, so no runner resumes it.
        return own
    effect = mark_of(call.run_key, call.step, call.visit, call.step_attempt, call.effect)
    return f"{effect}.{own}"


async def end_orphans(*marks: str, also: Iterable[psutil.Process] = ()) -> None:
    """Ends the processes with one of the marks, and those in `also`: politely, then for good.

    The mark of an effect stands for all that begin with it.
    """
    known = set(also)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for _ in range(_LOOKS):
            # Searched again each time: until it is gone, a program may start others.
            known.update(await asyncio.to_thread(marked, *marks))
            left = [process for process in known if lives(process)]
            if not left:
                return
            send(left, number)
            await asyncio.sleep(_LOOK_SECONDS)


def send(processes: Iterable[psutil.Process], number: int) -> None:
    """Signals processes; those that have ended, or belong to another user, are left out."""
    import psutil

    for process in processes:
        with suppress(psutil.Error):
            process.send_signal(number)  # psutil notices when the pid was reused.


def descendants(pid: int) -> list[psutil.Process]:
    """Returns the children of a process, their children, and so on.

    psutil's own function compares start times. A system whose clock is being corrected reports
    those differently from one moment to the next, and children would be missed.
    """
    import psutil

    parents: dict[psutil.Process, int] = {}
    for process in _processes():
        with suppress(psutil.Error):
            parents[process] = process.ppid()
    family, found = {pid}, []
    while new := [p for p, parent in parents.items() if parent in family and p.pid not in family]:
        family.update(process.pid for process in new)
        found += new
    return found


def marked(*marks: str) -> list[psutil.Process]:
    """Returns the processes with one of the marks, as far as this user may look at them."""
    import psutil

    wanted = {mark for mark in marks if mark}
    found = []
    for process in _processes() if wanted else ():
        with suppress(psutil.Error, OSError):
            mark = process.environ().get(MARK, "")
            is_wanted = mark in wanted or mark.partition(".")[0] in wanted
            if is_wanted and process.pid != os.getpid():
                found.append(process)
    return found


def _processes() -> Iterator[psutil.Process]:
    """Yields every process, as it is now; `process_iter` would remember some that have ended."""
    import psutil

    for pid in psutil.pids():
        with suppress(psutil.Error):
            yield psutil.Process(pid)


def lives(process: psutil.Process) -> bool:
    """Whether a process still runs."""
    import psutil

    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
