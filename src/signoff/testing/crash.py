"""The crash harness: kills a real process at its n-th write and checks that runs resume.

The story under test is a function `async def story(store, log)` at the top level of an
importable file. It starts a run or resumes it, answers pending requests, and returns when
the run has ended. After every kill it is called again in a fresh process. It logs what it
performs: `log.watch(agent)` does so for an agent, `log.note(label)` for everything else,
where the label is `run/step/visit/attempt/effect`, such as `report/test/1/1/pytest#1`.
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
    story: Story, directory: Path, *, when: When, again: bool = False, timeout: float = 120.0
) -> Iterator[Survival]:
    """Kills the story at its first write, then at its second, until it ends without a kill."""
    for at in range(1, MOST_PROCESSES):
        folder = directory / f"{when}-{at}"
        survival = crash_at(story, folder, at=at, when=when, again=again, timeout=timeout)
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
    """Kills a process at one write, then lets fresh processes continue to the end.

    With `again`, each of those is also killed at its own write of that number.
    """
    directory.mkdir(parents=True)
    log = EffectLog(directory)
    repeated: list[str] = []
    deaths = 0
    while deaths < MOST_PROCESSES:
        fatal_write = at if again or not deaths else NEVER
        stored = _stored_replies(directory) if deaths else set()
        count_before = len(log.keys())
        killed = _run(story, directory, fatal_write, when, timeout)
        repeated += [key for key in log.keys()[count_before:] if key in stored]
        if not killed:
            runs = _runs(directory)
            return Survival(at, when, deaths, runs, log.keys(), repeated)
        deaths += 1
    raise AssertionError(f"the story never ends when every process is killed {when} write {at}")


def _run(story: Story, directory: Path, at: int, when: When, timeout: float) -> bool:
    """Runs the story in a separate process; returns whether it was killed."""
    source = inspect.getsourcefile(story)
    argv = [sys.executable, "-m", "signoff.testing.crash_child", str(source), story.__name__]
    process = subprocess.run(
        [*argv, str(directory), str(at), when],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if process.returncode == -signal.SIGKILL:
        return True
    if process.returncode != 0:
        raise AssertionError(f"a process failed after a kill {when} write {at}: {process.stderr}")
    return False


def _stored_replies(directory: Path) -> set[str]:
    """Returns the labels of effects whose reply is in the journal, as in `EffectLog`."""
    labels: set[str] = set()
    if not (directory / DATABASE).exists():
        return labels
    with closing(SqliteStore(directory / DATABASE)) as store:
        for row in store.rows():
            state = RunState()
            for event in _events(store, row.name):
                if isinstance(event, ev.EffectFinished) and event.error is None:
                    parts = (row.name, state.step, state.visit, state.attempt, event.id)
                    labels.add("/".join(map(str, parts)))
                evolve(state, event)
    return labels


def _runs(directory: Path) -> dict[str, RunState]:
    states = {}
    with closing(SqliteStore(directory / DATABASE)) as store:
        for row in store.rows():
            states[row.name] = state = RunState()
            for event in _events(store, row.name):
                evolve(state, event)
    return states


def _events(store: Store, name: str) -> Iterator[ev.Event]:
    for row in store.journal(store.row(name).id):
        for event in decode(row.events, store.blob):
            yield ev.from_json(event)
