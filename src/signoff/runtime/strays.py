"""Finds processes that left their group: daemons a program forked and forgot.

A call's processes carry a mark in their environment, which children inherit. Where the
system lets us read it (Linux), those that outlived the group are found by it and ended.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

MARK = "SIGNOFF_CALL"
"""The variable that carries the mark."""

_LOOK_SECONDS = 0.05
_LOOKS = 100


async def end_strays(mark: str) -> None:
    """Ends every process that carries the mark: politely, then for good."""
    left = await asyncio.to_thread(marked, mark)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for _ in range(_LOOKS):
            if not left:
                return
            for pid in left:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
            await asyncio.sleep(_LOOK_SECONDS)
            left = await asyncio.to_thread(marked, mark)


def marked(mark: str) -> list[int]:
    """Returns the processes that carry the mark; none where processes cannot be looked at."""
    needle = f"{MARK}={mark}".encode()
    return [int(place.name) for place in Path("/proc").glob("[0-9]*") if _carries(place, needle)]


def _carries(place: Path, needle: bytes) -> bool:
    try:
        return needle in (place / "environ").read_bytes().split(b"\0")
    except OSError:
        return False  # somebody else's, or gone by now
