"""The crash harness: kills a real process at its n-th write and checks that runs resume.

The story under test is a function `async def story(store, log)` at the top level of an
importable file. It starts a run or resumes it, answers pending requests, and returns when
the run has ended. After every kill it is called again in a fresh process. It logs what it
performs: `log.watch(agent)` does so for an agent, `log.note(label)` for everything else,
where the label is `run/step/visit/attempt/effect`, such as `report/test/1/1/pytest#1`.
"""

from __future__ import annotations

import atexit
import inspect
import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

from signoff.core import events as ev
from signoff.core.codec import decode
from signoff.core.fold import evolve
from signoff.core.run_state import RunState
from signoff.runtime.store_port import Store
from signoff.testing.crash_child import ADDRESS, DATABASE, ERRORS, NEVER, open_story_store
from signoff.testing.doubles import EffectLog, When

Story: TypeAlias = Callable[[Store, EffectLog], Awaitable[Any]]

MOST_PROCESSES = 500
"""A story that needs more processes than this makes no progress."""


@dataclass(frozen=True)
class Survival:
    """The result of a story whose processes were killed."""

    at: int
    """The number of the write at which it was killed."""
    when: When
    deaths: int
    """How many processes were killed before one reached the end."""
    runs: dict[str, RunState]
    """The final state of every run of the story, by name."""
    performed: list[str]
    """Every effect that was really performed, in order."""
    repeated: list[str]
    """Effects that were performed again although their reply was stored; should be empty."""


def crash_everywhere(
    story: Story,
    directory: Path,
    *,
    when: When,
    again: bool = False,
    timeout: float = 120.0,
    new_store: Callable[[], str] | None = None,
) -> Iterator[Survival]:
    """Kills the story at its first write, then at its second, until it ends without a kill.

    `new_store` returns the URL of a new, empty store; without it, each story gets a SQLite file.
    """
    for at in range(1, MOST_PROCESSES):
        folder = directory / f"{when}-{at}"
        survival = crash_at(
            story, folder, at=at, when=when, again=again, timeout=timeout, new_store=new_store
        )
        yield survival
        if not survival.deaths:
            return


def crash_at(
    story: Story,
    directory: Path,
    *,
    at: int,
    when: When,
    again: bool = False,
    timeout: float = 120.0,
    new_store: Callable[[], str] | None = None,
) -> Survival:
    """Kills a process at one write, then lets fresh processes continue to the end.

    With `again`, each of those is also killed at its own write of that number.
    """
    directory.mkdir(parents=True)
    if new_store is not None:
        (directory / ADDRESS).write_text(new_store(), "utf-8")
    log = EffectLog(directory)
    repeated: list[str] = []
    for deaths in range(MOST_PROCESSES):
        stored = _stored_replies(directory) if deaths else set()
        count_before = len(log.keys())
        killed = _was_killed(story, directory, at if again or not deaths else NEVER, when, timeout)
        repeated += [key for key in log.keys()[count_before:] if key in stored]
        if not killed:
            return Survival(at, when, deaths, _runs(directory), log.keys(), repeated)
    raise AssertionError(f"the story never ends when every process is killed {when} write {at}")


_SERVERS = deque[subprocess.Popen[str] | None]([None, None])
"""The programs that fork the processes of stories; starting one takes longer than most stories.

There are two that take turns, so that a run is resumed with another hash seed than it was killed
with, as in real life: the order of a set must not matter.
"""


def _ask_server(request: Sequence[Any]) -> str:
    """Returns the exit code of the process for a request; empty if its story is unusable."""
    server = _SERVERS.popleft() or _start()
    code = ""
    try:
        print(json.dumps(request), file=server.stdin, flush=True)
        code = cast("IO[str]", server.stdout).readline().strip()
    finally:
        # One that did not answer, or whose answer was not awaited, is of no further use.
        if not code:
            _end(server)
        _SERVERS.append(server if code else None)
    return code


def _start() -> subprocess.Popen[str]:
    server = subprocess.Popen(
        [sys.executable, "-m", "signoff.testing.crash_child"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    atexit.register(_end, server)
    return server


def _end(server: subprocess.Popen[str]) -> None:
    server.kill()
    server.communicate()


def _was_killed(story: Story, directory: Path, at: int, when: When, timeout: float) -> bool:
    """Runs the story in a new process; returns whether that was killed."""
    what = [str(inspect.getsourcefile(story)), story.__name__, dict(os.environ)]
    code = _ask_server([*what, str(directory), at, when, timeout])
    if code in ("0", str(-signal.SIGKILL)):
        return code != "0"
    problem = f"a process failed after a kill {when} write {at}"
    if not code:
        raise AssertionError("the file of the story cannot be imported; see the traceback")
    if code == str(-signal.SIGALRM):
        raise AssertionError(f"{problem}: it took longer than {timeout} seconds")
    raise AssertionError(f"{problem}: {(directory / ERRORS).read_text('utf-8')}")


def _stored_replies(directory: Path) -> set[str]:
    """Returns the labels of effects whose reply is in the journal, as in `EffectLog`."""
    labels = set()
    for name, state, event in _events(directory):
        if isinstance(event, ev.EffectFinished) and event.error is None:
            parts = (name, state.step, state.visit, state.attempt, event.id)
            labels.add("/".join(map(str, parts)))
    return labels


def _runs(directory: Path) -> dict[str, RunState]:
    # Events change the state in place, so at the end each one is the final state of its run.
    return {name: state for name, state, _event in _events(directory)}


def _events(directory: Path) -> Iterator[tuple[str, RunState, ev.Event]]:
    """Yields every event with the name of its run and the run's state before it."""
    if not (directory / DATABASE).exists() and not (directory / ADDRESS).exists():
        return
    with closing(open_story_store(directory)) as store:
        for run in store.rows():
            state = RunState()
            for row in store.journal(run.id):
                for event in map(ev.from_json, decode(row.events, store.blob)):
                    yield run.name, state, event
                    evolve(state, event)
