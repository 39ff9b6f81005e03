"""Collects everything about one run, and returns its log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from signoff.app.people.answering import answer_to_json, request_to_json
from signoff.app.runs.history import events_of, resume_report
from signoff.app.runs.next_commands import next_command, with_file
from signoff.app.runs.run_records import stored_record
from signoff.app.runs.runs import current_row
from signoff.app.settings.project import Project
from signoff.core import events as ev
from signoff.core.outcome import Status
from signoff.core.remedies import Remedy, Resume
from signoff.core.requests import ItemState
from signoff.core.spend import LedgerEntry, Spend
from signoff.core.stop_reason import ProcessStopped, StopReason, error_of, remedies
from signoff.notation import ResumeReport, RunReport
from signoff.runtime.owner import is_alive
from signoff.runtime.store_port import InboxItem, Owner, RunRow
from signoff.store.run_layout import EndView
from signoff.views.narration import LogLine, Narrator, Weight, describe_answer
from signoff.views.timeline import Timeline

if TYPE_CHECKING:
    from signoff.review.pure.history import ReviewHistory


@dataclass(frozen=True)
class RunDetails:
    """Everything that is known about a run."""

    row: RunRow
    timeline: Timeline
    inbox: tuple[InboxItem, ...]
    requests: tuple[Mapping[str, Any], ...]
    """The inbox as plain values, each with the commands that answer it."""
    folder: Path
    notation_report: RunReport | None = None
    """What the run's notation reports about it."""
    end: EndView | None = None
    """What the run leaves to its user, if it has ended and its notation shows that."""
    answered: tuple[Mapping[str, Any], ...] = ()
    """Requests whose answers the run has not used yet, as plain values."""
    progress: ResumeReport | None = None
    """Where the run continues, if it has not ended and its notation can say."""
    review: ReviewHistory | None = None
    """The history of its review, if its notation has reviews."""
    driver: Owner | None = None
    """The process that drives the run now."""

    @property
    def ledger(self) -> list[LedgerEntry]:
        """What the run's calls cost, by step and agent."""
        return sorted(self.timeline.state.ledger.values())

    @property
    def state(self) -> Mapping[str, Any]:
        """What the run's steps have produced so far; not part of `to_json`, as it may be long."""
        return self.timeline.state.state_with_pending

    @property
    def handed_out(self) -> bool:
        """Whether external workers do the work of its agents."""
        return ev.ANY_AGENT in self.timeline.state.stand_ins

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the run stopped; a process that died has not recorded a reason itself."""
        if self.row.status is Status.INTERRUPTED and self.timeline.state.status is Status.RUNNING:
            return ProcessStopped(self.row.reason)
        if self.row.status is Status.QUEUED:
            # It stopped before that, and was queued to continue.
            return None
        return self.timeline.state.stop_reason

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """How to continue the run; empty if it has ended for good."""
        row = self.row
        found = remedies(row.name, row.status, self.stop_reason, row.due_at)
        # Without a notation, no key of the target sets a limit on rounds.
        return found if row.target and not self.notation_report else with_file(found, row.target)

    @property
    def result(self) -> dict[str, Any] | None:
        """The file that the run leaves to its user, and what it is, as plain values."""
        return self.result_in(self.folder)

    def result_in(self, folder: PurePath) -> dict[str, Any] | None:
        """Returns the result with its files named as if `folder` were the run's."""
        end = self.end
        if end is None:
            return None
        latest = str(folder / end.latest) if end.latest else None
        unreviewed = None if end.latest_reviewed else latest
        files = {"path": str(folder / end.path), "latest": latest, "unreviewed": unreviewed}
        return {**files, "passed": end.passed, **end.facts}

    def to_json(self) -> dict[str, Any]:
        """Returns the report as plain values: a `RunDocument`, and what its notation reports."""
        # Most commands print no documents, and need not load their types.
        from signoff.app import json_documents as docs

        row, line, stop, driver = self.row, self.timeline, self.stop_reason, self.driver
        error = error_of(row.status, stop)
        return {
            **docs.run_info(row),
            "stop_reason": stop.to_json() if stop is not None else None,
            "error": error.to_json() if error is not None else None,
            "remedies": [each.to_json() for each in self.remedies],
            "params": line.state.params,
            "inbox": list(self.requests),
            "decisions": [asdict(decision) for decision in line.decisions],
            "spend": spend_to_json(line.spend),
            "limits": line.state.limits.to_json(),
            "steps": [*map(docs.step_document, line.visits)],
            "ledger": [*map(docs.ledger_line, self.ledger)],
            "definition": row.definition,
            "directory": str(self.folder),
            "result": self.result,
            "owner": row.owner,
            "driver": {"host": driver.host_name, "pid": driver.pid} if driver else None,
            "progress": self.progress.facts if self.progress is not None else None,
            **(self.notation_report.facts if self.notation_report else {}),
        }


def show(project: Project, name: str | None = None) -> RunDetails:
    """Returns the report of a run, or of the latest one."""
    row = current_row(project, project.run(name))
    # Read before the journal: an answer that is used in between is shown as pending rather than not
    # at all.
    inbox = project.store.items(row.name)
    answered = project.store.items(row.name, state=(ItemState.ANSWERED,))
    record = stored_record(project.store, row)
    timeline, review = record.folded()
    state = timeline.state
    if row.status is not Status.RUNNING:
        timeline.close_bill()
    return RunDetails(
        row=row,
        timeline=timeline,
        inbox=tuple(inbox),
        requests=tuple(request_to_json(project, item) for item in inbox),
        answered=tuple(request_to_json(project, item) for item in answered),
        folder=project.folder(row.name),
        notation_report=record.report(state.state_with_pending, record.definition)
        if record.report is not None
        else None,
        progress=resume_report(project, row, state),
        end=project.end_view(row, state),
        review=review,
        driver=project.store.owner(row.owner, is_alive) if row.owner is not None else None,
    )


def spend_to_json(spend: Spend) -> dict[str, Any]:
    """Returns what a run cost; null if some call did not report it."""
    names = ("calls", "tokens", "usd", "known_tokens", "known_usd", "known_cached")
    return {each: getattr(spend, each) for each in names} | {"seconds": round(spend.seconds, 3)}


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
        # The last look came after the run had come to rest, so nothing is missing.
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
