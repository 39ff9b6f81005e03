"""What an export gets: the stored record of one run, as data.

An export is a pure function of this record: it has no clock, no environment and no project, so
the same journal gives the same bytes on every machine. Whether a run's process is still alive is
not part of the record either; a run whose process died is exported as the journal left it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from signoff.core import events as ev
from signoff.notation import HistoryFold, RunReport
from signoff.review.pure.history import ReviewHistory
from signoff.runtime.store_port import JournalRow, numbered_events
from signoff.views.timeline import Timeline

REVIEW_EVENTS = frozenset(
    kind.tag
    for kind in (
        *(ev.RunStarted, ev.StepWorked, ev.Escalated, ev.StepFinished, ev.ItemFinished),
        *(ev.AttemptFailed, ev.AttemptOpened, ev.AttemptReplaced),
    )
)
"""The events that a review is made of; the calls of its agents are not."""


@dataclass(frozen=True)
class RunRecord:
    """Everything that is stored about a run."""

    name: str
    workflow: str
    target: str
    """How the workflow is found again: `module:NAME`, a file, or empty."""
    definition: Mapping[str, Any]
    """The frozen definition of the workflow, with the name of its notation."""
    journal: Sequence[JournalRow]
    """Its commits, oldest first."""
    blob: Callable[[str], str]
    """Reads a long text by its digest; raises `StoreDamaged` if it is missing."""
    report: Callable[[Mapping[str, Any], Mapping[str, Any]], RunReport] | None = None
    """The report of the run's notation, from the run's state and definition; None without one."""
    history: Callable[[Mapping[str, Any]], HistoryFold] | None = None
    """What follows a review of the run's notation; None if it has no reviews."""

    def events(self, *, whole: bool = True) -> Iterator[tuple[int, ev.Event]]:
        """Returns the run's events, each with the number of its commit.

        Long texts are stored separately; `whole=False` returns short digests in their place. That
        is faster, and works even if a text is lost.
        """
        return numbered_events(self.journal, self.blob if whole else short_digest)

    def timeline(self, *, whole: bool = True) -> Timeline:
        """Returns what happened, folded: every visit, the decisions, the state and the spend."""
        return Timeline().follow(event for _, event in self.events(whole=whole))

    def folded(self) -> tuple[Timeline, ReviewHistory | None]:
        """Returns the timeline and the history of the review, in one reading of the journal."""
        timeline = Timeline()
        fold = self.history(self.definition) if self.history is not None else None
        for _, event in self.events():
            timeline.apply(event)
            if fold is not None:
                fold.apply(event)
        return timeline, fold.history if fold is not None else None

    def review(self) -> ReviewHistory | None:
        """Returns the history of the run's review; None if its notation has no reviews."""
        return self.folded()[1]

    def facts(self, timeline: Timeline) -> Mapping[str, Any]:
        """Returns what the run's notation reports, such as `rounds` and `findings`."""
        return self.reported(timeline.state.state_with_pending)

    def reported(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns what the run's notation reports about a state."""
        return self.report(state, self.definition).facts if self.report else {}


@dataclass(frozen=True)
class ExportOptions:
    """What the user chose for an export."""

    content: bool = False
    """Whether telemetry may contain prompts, replies and explanations (`log_content`)."""


@dataclass(frozen=True)
class Export:
    """A format of `signoff export`."""

    name: str
    help: str
    """What it is for, in one line."""
    write: Callable[[RunRecord, ExportOptions], Iterator[str]]
    """Yields the document in parts. The same record and options give the same parts. A run that
    the format cannot express raises `UsageError`."""


def short_digest(digest: str) -> str:
    """Returns what is shown in place of a long text."""
    return f"[{digest[:12]}]"
