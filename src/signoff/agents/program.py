"""Runs an agent program for one call, and cleans up after it.

The program gets its prompt on standard input, its own environment and a time limit. When
it ends, is cancelled or takes too long, its process group and everything that detached
from it are gone before the caller continues.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from signoff.agents.kinds import bundled_program
from signoff.agents.options import one_of, positive_seconds, whole_number
from signoff.core.effects import CommandResult
from signoff.errors import AgentBadRequest, AgentTimeout, AgentTransient, CommandFailed, ConfigError
from signoff.runtime.environment import Secrets
from signoff.runtime.orphans import call_mark, end_orphans
from signoff.runtime.ports import Call
from signoff.runtime.process import Sink, run_process

TIMEOUT_SECONDS = 1800.0
"""A coding agent may work for a while; after this long it hangs."""

VENDOR_RETRIES = 2
"""How often a vendor's program may retry by itself, before the engine's own retries."""

PROBE_SECONDS = 60.0
"""How long a program may take to print its version; on a busy machine, many seconds."""

_VERSION = re.compile(r"\b(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?")


@dataclass(frozen=True, kw_only=True)
class ProgramOptions:
    """The options of every program in the settings file."""

    path: str | None = None
    """Where the program is, if not on PATH."""
    model: str | None = None
    timeout: float = TIMEOUT_SECONDS
    env: Mapping[str, str] | None = None
    """Variables to set."""
    pass_env: Sequence[str] = ()
    """Variables to pass on from this process."""
    args: Sequence[str] = ()
    base_url: str | None = None
    """Another server than the vendor's."""
    key_env: str | None = None
    """The variable that holds the key."""
    vendor_retries: int = VENDOR_RETRIES
    outside: Literal["refuse", "note"] | None = None
    """What to do about changes outside the workspace; None depends on the request."""

    def __post_init__(self) -> None:
        if not isinstance(self.args, list | tuple) or not isinstance(self.pass_env, list | tuple):
            raise ConfigError("args and pass_env must be lists")
        if self.env is not None and not isinstance(self.env, Mapping):
            raise ConfigError("env must map variable names to values")
        if self.outside is not None:
            one_of("outside", self.outside, ("refuse", "note"))
        positive_seconds("timeout", self.timeout)
        whole_number("vendor_retries", self.vendor_retries, minimum=0)


@dataclass(frozen=True)
class Job:
    """One run of a program."""

    argv: Sequence[str]
    cwd: str
    environment: Mapping[str, str]
    seconds: float
    stdin: str = ""

    @cached_property
    def secrets(self) -> Secrets:
        """The secrets that the program can see, and so might print."""
        return Secrets.of(self.environment)


async def run_program(job: Job, call: Call, out: Sink, err: Sink) -> CommandResult:
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
            "(to allow more, raise timeout: in the settings)"
        ) from None
    except CommandFailed as error:
        text = str(error)
        busy = "Resource temporarily unavailable" in text or "Cannot allocate memory" in text
        raise (AgentTransient if busy else AgentBadRequest)(text) from error
    finally:
        # Cancellation must not interrupt the cleanup: no process of the call may survive it.
        await asyncio.shield(asyncio.ensure_future(end_orphans(mark)))


def find_program(name: str, path: str | None, bundled: Sequence[str]) -> str | None:
    """Returns the absolute path of a program: as configured, on PATH, or inside its package.

    The path is absolute because the program is started in another folder. `bundled` names a
    package and the program's path in it. None means that the program is not installed.
    """
    program = shutil.which(name if path is None else str(Path(path).expanduser()))
    if program is None and path is not None:
        raise AgentBadRequest(f"no program at {path} (path: in the settings of {name})")
    program = program or bundled_program(bundled)
    return str(Path(program).absolute()) if program is not None else None


async def probe(argv: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str]:
    """Returns the exit code and the output of a short command, such as `--version`."""
    try:
        result = await run_process(argv, env=environment, seconds=PROBE_SECONDS)
    except CommandFailed as error:
        return -1, str(error)
    return result.code, (result.stdout.strip() or result.stderr.strip())


def parse_version(text: str) -> tuple[int, ...] | None:
    """Returns the version that a program printed, or None."""
    match = _VERSION.search(text)
    return tuple(int(part or 0) for part in match.groups()) if match else None
