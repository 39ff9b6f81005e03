"""The crash harness: kills a real process at its n-th write, and sees what a resume makes of it.

The story under test is a function `async def story(store, log)` at the top level of a file
that can be imported. It starts a run or resumes it, answers what is waited for, and returns
when the run has ended; it is called again in a fresh process after every kill. It tells the
log what it performs: `log.watch(agent)` does so for an agent, `log.note(label)` for the rest,
where the label is `run/step/visit/attempt/effect` as in `report/test/1/1/pytest#1`.
"""

from __future__ import annotations

import inspect
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from signoff.core import events as ev
from signoff.core.codec import decode
from signoff.core.fold import evolve
from signoff.core.run_state import RunState
from signoff.runtime.store_port import Store
from signoff.store.sqlite import SqliteStore
from signoff.testing.crash_child import DATABASE, NEVER
from signoff.testing.crashing_store import When
from signoff.testing.effect_log import EffectLog

Story: TypeAlias = Callable[[Store, EffectLog], Awaitable[Any]]

MOST_PROCESSES = 500
"""A story that needs more resumes than this is not getting anywhere."""


@dataclass(frozen=True)
class Survival:
    """What became of a story whose processes were killed."""

    at: int
    """The write it was killed at."""
    when: When
    deaths: int
    """How many processes were killed before one ended by itself."""
    runs: dict[str, RunState]
    """Every run of the story as it ended, by name."""
    performed: list[str]
    """Every effect as the world outside saw it, in order."""
    repeated: list[str]
    """Effects that were performed again although their reply was stored; empty is right."""


def crash_everywhere(
    story: Story, directory: Path, *, when: When, again: bool = False, timeout: float = 120.0
) -> Iterator[Survival]:
    """Kills the story at its first write, then at its second, until it ends without dying."""
    for at in range(1, MOST_PROCESSES):
        place = directory / f"{when}-{at}"
        survival = crash_at(story, place, at=at, when=when, again=again, timeout=timeout)
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
) -> Survival:
    """Kills a process at one write, then lets fresh ones go on to the end.

    With `again`, each of those is killed at the same write of its own.
    """
    directory.mkdir(parents=True)
    log = EffectLog(directory)
    repeated: list[str] = []
    deaths = 0
    while deaths < MOST_PROCESSES:
        fatal = at if again or not deaths else NEVER
        stored = _stored_replies(directory) if deaths else set()
        seen = len(log.keys())
        died = _run(story, directory, fatal, when, timeout)
        repeated += [key for key in log.keys()[seen:] if key in stored]
        if not died:
            runs = _runs(directory)
            return Survival(at, when, deaths, runs, log.keys(), repeated)
        deaths += 1
    raise AssertionError(f"killed {when} write {at} of every process, the story never ends")


def _run(story: Story, directory: Path, at: int, when: When, timeout: float) -> bool:
    """Runs the story in a process of its own; tells whether it was killed."""
    source = inspect.getsourcefile(story)
    argv = [sys.executable, "-m", "signoff.testing.crash_child", str(source), story.__name__]
    ended = subprocess.run(
        [*argv, str(directory), str(at), when],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if ended.returncode == -signal.SIGKILL:
        return True
    if ended.returncode != 0:
        raise AssertionError(f"killed {when} write {at}, then a fresh process: {ended.stderr}")
    return False


def _stored_replies(directory: Path) -> set[str]:
    """Returns the places of effects whose reply is in the journal, as `EffectLog` has them."""
    found: set[str] = set()
    if not (directory / DATABASE).exists():
        return found
    with closing(SqliteStore(directory / DATABASE)) as store:
        for row in store.rows():
            state = RunState()
            for event in _events(store, row.name):
                if isinstance(event, ev.EffectFinished) and event.error is None:
                    place = (row.name, state.step, state.visit, state.attempt, event.id)
                    found.add("/".join(map(str, place)))
                evolve(state, event)
    return found


def _runs(directory: Path) -> dict[str, RunState]:
    ends = {}
    with closing(SqliteStore(directory / DATABASE)) as store:
        for row in store.rows():
            ends[row.name] = state = RunState()
            for event in _events(store, row.name):
                evolve(state, event)
    return ends


def _events(store: Store, name: str) -> Iterator[ev.Event]:
    for row in store.journal(store.row(name).id):
        for event in decode(row.events, store.blob):
            yield ev.from_json(event)
