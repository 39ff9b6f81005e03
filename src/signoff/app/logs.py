"""Returns the log of a run, event by event, and follows a running one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from signoff.app.history import events_of
from signoff.app.inbox import answer_to_json
from signoff.app.next_commands import next_command
from signoff.app.project import Project
from signoff.app.runs import current_row
from signoff.core import events as ev
from signoff.core.outcome import Status
from signoff.core.requests import ItemState
from signoff.remedies import Resume
from signoff.runtime.narration import LogLine, Narrator, Weight, describe_answer

LOOK_SECONDS = 0.5
"""How often a followed run is polled; each poll is one indexed read of the journal."""


@dataclass(frozen=True)
class Entry:
    """One event and its log lines."""

    seq: int
    event: ev.Event
    lines: tuple[LogLine, ...]


def logs(project: Project, name: str | None = None, *, whole: bool = False) -> Iterator[Entry]:
    """Yields all events so far; `whole` includes long texts."""
    narrator = Narrator()
    yield from _entries(project, project.run(name).name, narrator, 0, whole)


def follow(
    project: Project,
    name: str | None,
    sleep: Callable[[float], None],
    *,
    whole: bool = False,
) -> Iterator[Entry]:
    """Yields all events so far and new ones, until the run stops."""
    run = project.run(name).name
    narrator = Narrator()
    seq = 0
    while True:
        # The status is read before the journal, so no event can be committed unseen before
        # the loop ends.
        resting = current_row(project, project.store.row(run)).status is not Status.RUNNING
        for entry in _entries(project, run, narrator, seq, whole):
            seq = entry.seq
            yield entry
        if resting:
            return
        sleep(LOOK_SECONDS)


def afterwards(project: Project, name: str) -> list[LogLine]:
    """Returns what is not in the journal yet: unused answers, and a process that stopped."""
    row = project.store.row(name)
    lines = []
    for item in project.store.items(name, state=(ItemState.ANSWERED,)):
        words = describe_answer(answer_to_json(item) or {})
        ready = f"{item.step}: {words} (#{item.id}, used when the run resumes)"
        lines.append(LogLine(item.answered_at or row.updated_at, ready))
    current = current_row(project, row)
    if current.status is not row.status:
        why = f"{current.status.value}: {current.reason}; {next_command(Resume(name))}"
        lines.append(LogLine(row.updated_at, why, Weight.TROUBLE))
    return lines


def _entries(
    project: Project, run: str, narrator: Narrator, after: int, whole: bool
) -> Iterator[Entry]:
    row = project.store.row(run)
    for seq, event in events_of(project, row, after=after, whole=whole):
        yield Entry(seq, event, tuple(narrator.narrate(event)))
