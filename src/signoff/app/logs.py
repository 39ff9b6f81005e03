"""Returns the log of a run, event by event, and follows a running one."""

from __future__ import annotations

import json
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


def logs(
    project: Project,
    name: str | None = None,
    *,
    sleep: Callable[[float], None] | None = None,
) -> Iterator[Entry]:
    """Yields all events so far; with `sleep`, also new ones until the run stops."""
    first = project.run(name)
    run, layout = first.name, project.layout(first)
    description = json.loads(project.store.description(first.id))
    narrator = Narrator(warnings_of=layout.warnings, news_of=layout.news(description))
    after = 0
    while True:
        # The status is read before the journal, so no event can be committed unseen before
        # the loop ends.
        row = current_row(project, project.store.row(run))
        for seq, event in events_of(project, row, after=after):
            after = seq
            yield Entry(seq, event, tuple(narrator.narrate(event)))
        if sleep is None or row.status not in (Status.QUEUED, Status.RUNNING):
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
