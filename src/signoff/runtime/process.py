"""Programs in process groups of their own, with no orphans.

A cancelled or timed-out program's whole group is asked to end, then killed, and gone
before the caller is told. A group left behind by a runner that died is found again by
the number and birth recorded when it was started.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from signoff.core.effects import CommandResult
from signoff.errors import CommandFailed
from signoff.runtime.owner import birth_of

GRACE_SECONDS = 5.0
"""Time between asking a group to end and killing it."""

KEPT_BYTES = 4_000_000
"""How much of each stream is kept; the middle of anything longer is dropped."""

_CHUNK = 65_536


async def run_process(
    argv: Sequence[str],
    *,
    cwd: str | None = None,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    seconds: float | None = None,
    started: Callable[[dict[str, Any]], None] = lambda _process: None,
    emit: Callable[[str], None] = lambda _text: None,
) -> CommandResult:
    """Runs a program to its end and returns what it printed; its group never outlives this call."""
    process = await _start(argv, cwd, env)
    started({"pid": process.pid, "born": birth_of(process.pid) or ""})
    out, err = _Kept(emit), _Kept(emit)
    try:
        async with asyncio.timeout(seconds):
            await asyncio.gather(
                _feed(process, stdin), out.read(process.stdout), err.read(process.stderr)
            )
            code = await process.wait()
    except TimeoutError:
        raise CommandFailed(
            f"{argv[0]} took longer than {seconds:g} seconds and was stopped"
        ) from None
    finally:
        await end_group(process.pid)
        if process.returncode is None:
            await process.wait()
    return CommandResult(code, out.text(), err.text())


async def _start(
    argv: Sequence[str], cwd: str | None, env: Mapping[str, str] | None
) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=cwd,
            env=None if env is None else {**os.environ, **env},
            start_new_session=True,
        )
    except FileNotFoundError:
        place = f" (in {cwd})" if cwd is not None else ""
        raise CommandFailed(f"{argv[0]!r} was not found{place}; check the name and PATH") from None
    except (OSError, ValueError) as error:
        raise CommandFailed(f"{argv[0]!r} could not be started: {error}") from error


async def _feed(process: asyncio.subprocess.Process, text: str | None) -> None:
    pipe = process.stdin
    if pipe is None:
        return
    # A program that does not read its input has a right to; its exit code tells.
    with suppress(BrokenPipeError, ConnectionResetError):
        if text:
            pipe.write(text.encode("utf-8", "surrogatepass"))
            await pipe.drain()
    pipe.close()


class _Kept:
    """One output stream, bounded: its beginning and its end."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    async def read(self, stream: asyncio.StreamReader | None) -> None:
        while stream is not None and (chunk := await stream.read(_CHUNK)):
            self._emit(chunk.decode("utf-8", "replace"))
            room = KEPT_BYTES // 2 - len(self._head)
            self._head += chunk[:room] if room > 0 else b""
            self._tail += chunk[max(room, 0) :]
            over = len(self._tail) - KEPT_BYTES // 2
            if over > 0:
                del self._tail[:over]
                self._dropped += over

    def text(self) -> str:
        head = self._head.decode("utf-8", "replace")
        tail = self._tail.decode("utf-8", "replace")
        note = f"\n[... {self._dropped} bytes left out ...]\n" if self._dropped else ""
        return head + note + tail


async def end_group(pid: int, *, born: str | None = None) -> None:
    """Ends a process group: politely, then for good. Returns when it is gone."""
    if born is not None and birth_of(pid) not in (born, None):
        return  # the number belongs to somebody else by now
    if not _signal(pid, signal.SIGTERM):
        return
    for _ in range(int(GRACE_SECONDS / 0.02)):
        await asyncio.sleep(0.02)
        if not _signal(pid, 0):
            return
    _signal(pid, signal.SIGKILL)
    for _ in range(int(GRACE_SECONDS / 0.02)):
        if not _signal(pid, 0):
            return
        await asyncio.sleep(0.02)


def _signal(group: int, number: int) -> bool:
    """Signals a whole group; tells whether anybody was there to hear it."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
