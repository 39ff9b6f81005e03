"""What has changed in a run since a commit of its journal, for programs that follow it.

Both sides of the comparison are computed from the journal. So a follower needs to keep nothing but
the number of a commit, and can ask any process at any time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from signoff.app.history import events_of, history_fold
from signoff.app.project import Project
from signoff.app.runs import current_row
from signoff.core.events import ANY_AGENT
from signoff.core.outcome import Status
from signoff.core.severity import Severity
from signoff.core.spend import Spend
from signoff.exports.run_record import REVIEW_EVENTS
from signoff.notation import HistoryFold
from signoff.runtime.store_port import InboxItem, RunRow
from signoff.runtime.timeline import Decision, Timeline

MOVING = frozenset({Status.RUNNING, Status.QUEUED})
"""The statuses of a run that some process drives, or is about to."""


@dataclass(frozen=True)
class NewsState:
    """What a follower knows about a run at one commit of its journal."""

    step: str = ""
    round: int = 0
    open: Mapping[str, Severity] = field(default_factory=dict)
    """The severities of the open findings, by their ids."""
    spend: Spend = field(default_factory=Spend)
    decisions: tuple[Decision, ...] = ()


@dataclass(frozen=True)
class RunNews:
    """A run now, and what it was for a follower who has seen its journal up to a commit."""

    row: RunRow
    before: NewsState
    now: NewsState
    requests: tuple[InboxItem, ...]
    """What the run waits for."""
    handed_out: bool = False
    """Whether external workers do the work of its agents."""

    @property
    def open_findings(self) -> dict[str, int]:
        """Open findings by severity, the worst first."""
        return _counts(list(self.now.open.values()))

    @property
    def gone_findings(self) -> dict[str, int]:
        """Findings that were open before and no longer are."""
        return _counts([s for i, s in self.before.open.items() if i not in self.now.open])

    @property
    def new_findings(self) -> dict[str, int]:
        """Findings that were not open before and now are."""
        return _counts([s for i, s in self.now.open.items() if i not in self.before.open])

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What humans have decided since."""
        return self.now.decisions[len(self.before.decisions) :]


def news(project: Project, name: str, after: int = 0) -> RunNews:
    """Returns what has changed in a run since commit `after`; 0 is before its start."""
    row = current_row(project, project.store.row(name))
    timeline, fold = Timeline(), history_fold(project, row)
    before: NewsState | None = None if after > 0 else NewsState()
    for seq, event in events_of(project, row):
        if before is None and seq > after:
            before = _view(timeline, fold)
        # A review's state is most of its journal, and only its history is needed here.
        if fold is not None and event.tag in REVIEW_EVENTS:
            fold.apply(event)
        timeline.apply(event)
    now = _view(timeline, fold)
    handed_out = ANY_AGENT in timeline.state.stand_ins
    return RunNews(row, before or now, now, tuple(project.store.items(row.name)), handed_out)


def _view(timeline: Timeline, fold: HistoryFold | None) -> NewsState:
    findings = fold.history.open_findings() if fold is not None else []
    current = timeline.current
    return NewsState(
        step=current.step if current is not None else "",
        round=current.iteration if current is not None else 0,
        open={each.id: each.severity for each in findings},
        spend=timeline.spend,
        decisions=tuple(timeline.decisions),
    )


def _counts(severities: Sequence[Severity]) -> dict[str, int]:
    found = Counter(severities)
    return {each.value: found[each] for each in sorted(found, key=lambda each: each.rank)}
