"""Tells what happened in a run, event by event, and follows it while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from signoff.app.history import events_of
from signoff.app.inbox import answer_to_json
from signoff.app.next_commands import next_command
from signoff.app.project import Project
from signoff.app.runs import as_it_stands
from signoff.core import events as ev
from signoff.core.outcome import Status
from signoff.core.requests import ItemState
from signoff.remedies import Resume
from signoff.runtime.narration import LogLine, Narrator, Weight, describe_answer

LOOK_SECONDS = 0.5
"""How often a followed run is looked at; the journal is one indexed read."""


@dataclass(frozen=True)
class Entry:
    """One event, and what there is to say about it."""

    seq: int
    event: ev.Event
    lines: tuple[LogLine, ...]


def logs(project: Project, name: str | None = None, *, whole: bool = False) -> Iterator[Entry]:
    """Yields everything that has happened so far; `whole` includes long texts."""
    narrator = Narrator()
    yield from _entries(project, project.run(name).name, narrator, 0, whole)


def follow(
    project: Project,
    name: str | None,
    sleep: Callable[[float], None],
    *,
    whole: bool = False,
) -> Iterator[Entry]:
    """Yields what happened and what happens, until the run comes to rest."""
    run = project.run(name).name
    narrator = Narrator()
    seq = 0
    while True:
        # Read before the journal: what is committed in between is seen by the next look.
        resting = as_it_stands(project, project.store.row(run)).status is not Status.RUNNING
        for entry in _entries(project, run, narrator, seq, whole):
            seq = entry.seq
            yield entry
        if resting:
            return
        sleep(LOOK_SECONDS)


def afterwards(project: Project, name: str) -> list[LogLine]:
    """Returns what is true of a run and not in its journal yet, since nobody drives it."""
    row = project.store.row(name)
    lines = []
    for item in project.store.items(name, state=(ItemState.ANSWERED,)):
        words = describe_answer(answer_to_json(item) or {})
        ready = f"{item.step}: {words} (#{item.id}, used when the run resumes)"
        lines.append(LogLine(item.answered_at or row.updated_at, ready))
    stands = as_it_stands(project, row)
    if stands.status is not row.status:
        why = f"{stands.status.value}: {stands.reason}; {next_command(Resume(name))}"
        lines.append(LogLine(row.updated_at, why, Weight.TROUBLE))
    return lines


def _entries(
    project: Project, run: str, narrator: Narrator, after: int, whole: bool
) -> Iterator[Entry]:
    row = project.store.row(run)
    for seq, event in events_of(project, row, after=after, whole=whole):
        yield Entry(seq, event, tuple(narrator.narrate(event)))
