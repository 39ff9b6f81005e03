"""Runs a headless program for one call, and cleans up behind it.

It gets its prompt on standard input, surroundings of its own and a wall clock. When it
ends, is cancelled or takes too long, its whole process group and everything it let loose
are gone before the caller hears of it.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from signoff.core.effects import CommandResult
from signoff.errors import AgentBadRequest, AgentTimeout, AgentTransient, CommandFailed
from signoff.runtime.orphans import call_mark, end_orphans
from signoff.runtime.ports import Call
from signoff.runtime.process import Sink, run_process

LOOK_SECONDS = 10.0
"""How long a program may take to tell its version."""

_VERSION = re.compile(r"\b(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?")


@dataclass(frozen=True)
class Job:
    """One run of a program."""

    argv: Sequence[str]
    cwd: str
    environment: Mapping[str, str]
    seconds: float
    stdin: str = ""


async def run(job: Job, call: Call, out: Sink, err: Sink) -> CommandResult:
    """Runs a program to its end; raises `AgentTimeout`, or what `out` or `err` raise."""
    mark = call_mark(call)
    try:
        async with asyncio.timeout(job.seconds):
            return await run_process(
                job.argv,
                cwd=job.cwd,
                stdin=job.stdin,
                env=job.environment,
                mark=mark,
                started=call.started,
                out=out,
                err=err,
            )
    except TimeoutError:
        name = Path(job.argv[0]).name
        raise AgentTimeout(
            f"{name} gave no answer within {job.seconds:g} seconds and was stopped "
            "(timeout: in the settings gives it longer)"
        ) from None
    except CommandFailed as error:
        raise _not_started(error) from error
    finally:
        await asyncio.shield(asyncio.ensure_future(end_orphans(mark)))


def find(name: str, path: str | None, bundled: Callable[[], Path | None], remedy: str) -> str:
    """Returns where a program is: as set, on PATH, or inside the package that brings it.

    The answer holds in every folder, since the program is started in another one.
    """
    if path is not None:
        place = shutil.which(str(Path(path).expanduser()))
        if place is None:
            raise AgentBadRequest(
                f"there is no program at {path} (path: in the settings of {name})"
            )
        return str(Path(place).absolute())
    found = shutil.which(name) or bundled()
    if found is None:
        raise AgentBadRequest(f"{name} is not installed: {remedy}")
    return str(Path(found).absolute())


def inside(package: str, *places: str) -> Callable[[], Path | None]:
    """Returns a look into an installed package for a program, without importing it."""

    def look() -> Path | None:
        from importlib.util import find_spec

        spec = find_spec(package)
        roots = list(spec.submodule_search_locations or ()) if spec else []
        for place in (Path(root, *places) for root in roots):
            if place.is_file() and os.access(place, os.X_OK):
                return place
        return None

    return look


async def tell(argv: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str]:
    """Returns the exit code and the words of a program asked something short, such as a version."""
    try:
        ran = await run_process(argv, env=environment, seconds=LOOK_SECONDS)
    except CommandFailed as error:
        return -1, str(error)
    return ran.code, (ran.stdout.strip() or ran.stderr.strip())


def version_in(text: str) -> tuple[int, ...] | None:
    """Returns the version a program states, or None when it states none."""
    found = _VERSION.search(text)
    return tuple(int(part or 0) for part in found.groups()) if found else None


def _not_started(error: CommandFailed) -> AgentBadRequest | AgentTransient:
    text = str(error)
    busy = "Resource temporarily unavailable" in text or "Cannot allocate memory" in text
    return AgentTransient(text) if busy else AgentBadRequest(text)
