"""Reads a run's journal: as a record, as events, as a timeline, as the history of a review.

Also as news since a commit, and, for pages that follow a run, event by event as it grows.
"""

from __future__ import annotations

import json
from collections import Counter, OrderedDict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any

from signoff import plugins
from signoff.app.runs.run_records import stored_record
from signoff.app.runs.runs import current_row, list_runs
from signoff.app.settings.project import Project
from signoff.core import events as ev
from signoff.core.codec import decode
from signoff.core.errors import UnknownName, UsageError
from signoff.core.outcome import FINAL, Status
from signoff.core.remedies import ShowRun
from signoff.core.run_state import RunState
from signoff.core.severity import Severity
from signoff.core.spend import Spend
from signoff.core.words import Label
from signoff.notation import HistoryFold, RunSnapshot
from signoff.review.pure.finding import Finding
from signoff.review.pure.history import ReviewHistory, Version, log_lines
from signoff.runtime import store_port as port
from signoff.views.exports.run_record import REVIEW_EVENTS, ExportOptions, short_digest
from signoff.views.narration import LogLine, Narrator, Weight
from signoff.views.timeline import Decision, Timeline

if TYPE_CHECKING:
    from signoff.notation import ResumeReport


def events_of(
    project: Project, row: port.RunRow, *, after: int = 0, whole: bool = True
) -> Iterator[tuple[int, ev.Event]]:
    """Returns a run's events with the number of their commit.

    Long texts are stored separately; `whole=False` returns short digests in their place,
    which is faster.
    """
    # Most readers want to know what happened and not what was said, and the texts are nearly all of
    # a journal.
    blob = project.store.blob if whole else short_digest
    return port.numbered_events(project.store.journal(row.id, after), blob)


def form_of(project: Project, item: port.InboxItem) -> dict[str, Any]:
    """Returns the full request as it was opened."""
    form: dict[str, Any] = decode(item.form, project.store.blob)
    return form


def timeline_of(project: Project, row: port.RunRow, *, whole: bool = False) -> Timeline:
    """Returns the timeline of a run so far; its state has long texts only if `whole`."""
    return Timeline().follow(event for _, event in events_of(project, row, whole=whole))


def history_fold(project: Project, row: port.RunRow) -> HistoryFold | None:
    """Returns what follows the review of a run; None if its notation has no reviews."""
    notation = project.notation_of(row)
    if notation is None or not notation.history:
        return None
    fold: HistoryFold = plugins.load(notation.history)(
        json.loads(project.store.description(row.id))
    )
    return fold


def resume_report(
    project: Project, row: port.RunRow, state: RunState | None = None
) -> ResumeReport | None:
    """Returns where a run continues; None if it has ended, or if its notation says nothing."""
    if row.status in FINAL:
        return None
    description = json.loads(project.store.description(row.id))
    notation = plugins.notation(description.get("notation", ""))
    if notation is None or not notation.resume:
        return None
    run = RunSnapshot(row.name, state or load_state(project, row), description)
    report: ResumeReport = plugins.load(notation.resume)(run)
    return report


def need_review(project: Project, name: str | None) -> tuple[port.RunRow, ReviewHistory]:
    """Returns a run, by default the latest, and the history of its review."""
    row = project.run(name)
    history = stored_record(project.store, row).review()
    if history is None:
        raise without_review(row)
    return row, history


def without_review(row: port.RunRow) -> UsageError:
    """Returns the error of a run that has no review to show."""
    return UsageError(
        f"run {row.name!r} has no review: its workflow {row.workflow!r} is not a review flow",
        remedy=ShowRun(row.name),
    )


def load_state(project: Project, row: port.RunRow) -> RunState:
    """Returns the state of a run, folded from its journal."""
    return port.folded_state(project.store.load(row.name), project.store.blob)


def export(project: Project, format_name: str, run: str | None = None) -> Iterator[str]:
    """Returns a run, or the latest one, as a document in parts; raises `UnknownName`."""
    found = plugins.export(format_name)
    if found is None:
        raise UnknownName("format", format_name, sorted(plugins.paths("exports")))
    return found.write(
        stored_record(project.store, project.run(run)), ExportOptions(project.settings.log_content)
    )


MOST_NAMED = 10
"""Findings that the beginning of an id can mean, and that the error names."""


def select_findings(
    history: ReviewHistory,
    severities: Sequence[Severity],
    labels: Collection[Label],
    constraints: Sequence[str],
) -> list[Finding]:
    """Returns the findings that match every filter, in the order of a list."""
    known = [*history.constraints, *(each.constraint for each in history.findings)]
    for name in constraints:
        if name not in known:
            raise UnknownName("constraint", name, dict.fromkeys(known))
    found = [
        each
        for each in history.findings
        if _matches(each.severity, severities)
        and _matches(each.became, labels)
        and _matches(each.constraint, constraints)
    ]
    return history.listed(found)


def find_finding(
    project: Project, name: str, run: str | None = None
) -> tuple[port.RunRow, ReviewHistory, Finding]:
    """Returns a finding by its id or the beginning of it, with the review that has it.

    Of several runs it is the newest that knows it; `run` names one.
    """
    latest: dict[str, None] = {}
    # Newest first: an identity lasts across runs, and the newest knows what became of it.
    for row in [project.run(run)] if run is not None else list_runs(project):
        history = stored_record(project.store, row).review()
        if history is None:
            continue
        ids = [each.id for each in history.findings]
        latest = latest or dict.fromkeys(ids)
        exact = [name] if name in ids else [each for each in ids if each.startswith(name)]
        if len(exact) > 1:
            raise UsageError(f"{name!r} can mean several findings: {', '.join(exact[:MOST_NAMED])}")
        if exact:
            found = history.findings[ids.index(exact[0])]
            return row, history, found
    raise UnknownName("finding", name, latest)


def find_run_or_finding(project: Project, name: str) -> tuple[port.RunRow, Finding | None]:
    """Returns a run by its name, or a finding by its id with the newest run that knows it."""
    try:
        return project.run(name), None
    except UnknownName as error:
        try:
            row, _, finding = find_finding(project, name)
        except UnknownName:
            raise error from None
        return row, finding


def changes(
    history: ReviewHistory,
    run: str,
    number: int | None = None,
    first: int | None = None,
    last: int | None = None,
) -> list[tuple[Version, Version]]:
    """Returns pairs of versions: before and after each round's fixes, or two that rounds reviewed.

    `number` selects the fixes of one round; `first` or `last` select two versions.
    """
    if number is not None and (first is not None or last is not None):
        raise UsageError("choose either one round, or a first and a last one")
    for each in (number, first, last):
        if each is not None:
            _need_round(history, run, each)
    if first is not None or last is not None:
        return [_between(history, run, first, last)]
    numbers = [each.number for each in history.rounds if number in (None, each.number)]
    return [pair for each in numbers if (pair := history.fix_of(each)) is not None]


def artifact(history: ReviewHistory, run: str, number: int | None = None) -> Version:
    """Returns the version that a round reviewed, or the one that the run leaves."""
    if number is not None:
        _need_round(history, run, number)
    version = history.result if number is None else history.reviewed_in(number)
    if version is None:
        raise UsageError(f"run {run!r} has no version of the artifact yet")
    return version


def _between(
    history: ReviewHistory, run: str, first: int | None, last: int | None
) -> tuple[Version, Version]:
    versions = history.versions
    before = history.reviewed_in(first) if first is not None else versions[:1] and versions[0]
    after = history.reviewed_in(last) if last is not None else versions[:1] and versions[-1]
    if not before or not after:
        raise UsageError(f"run {run!r} has no version of the artifact yet")
    return before, after


def _need_round(history: ReviewHistory, run: str, number: int) -> None:
    if history.round(number) is None:
        known = [each.number for each in history.rounds]
        rounds = f"its rounds are {known[0]} to {known[-1]}" if known else "it has no rounds yet"
        raise UsageError(f"run {run!r} has no round {number}; {rounds}")


def _matches(value: Any, wanted: Collection[Any]) -> bool:
    return not wanted or value in wanted


# Both sides of the comparison are computed from the journal. So a follower needs to keep nothing
# but the number of a commit, and can ask any process at any time.

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

    row: port.RunRow
    before: NewsState
    now: NewsState
    requests: tuple[port.InboxItem, ...]
    """What the run waits for."""
    handed_out: bool = False
    """Whether external workers do the work of its agents."""

    @property
    def findings(self) -> dict[str, dict[str, int]]:
        """Findings by severity, the worst first: the open ones, and those that are new or gone."""
        before, now = self.before.open, self.now.open
        return {
            "open": _counts(now.values()),
            "new": _counts(each for name, each in now.items() if name not in before),
            "gone": _counts(each for name, each in before.items() if name not in now),
        }

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
        # The view of the past is taken as the journal passes the cursor: each event is read once.
        if before is None and seq > after:
            before = _view(timeline, fold)
        # A review's state is most of its journal, and only its history is needed here.
        if fold is not None and event.tag in REVIEW_EVENTS:
            fold.apply(event)
        timeline.apply(event)
    now = _view(timeline, fold)
    handed_out = ev.ANY_AGENT in timeline.state.stand_ins
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


def _counts(severities: Iterable[Severity]) -> dict[str, int]:
    found = Counter(severities)
    return {each.value: found[each] for each in sorted(found, key=lambda each: each.rank)}


# Folding a long review takes longer than showing it, and a page that follows a run asks for it
# again and again. So a run is folded once, and then event by event, as its journal grows.

MOST_RUNS = 8
"""Runs that are kept; the one that was not looked at for the longest time is dropped."""
LOG_LINES = 12


class FollowedRun:
    """A run as of the last look at its journal. Use it only inside `FollowedRuns.look`."""

    def __init__(self, project: Project, row: port.RunRow) -> None:
        self.definition: Mapping[str, Any] = json.loads(project.store.description(row.id))
        """The definition that it was started with."""
        self.lock = Lock()
        self.head = 0
        """The last commit that was read."""
        self.log: deque[LogLine] = deque(maxlen=LOG_LINES)
        """The latest news of its log."""
        self.closed = False
        """Whether calls in doubt were charged, which is not undone when the run resumes."""
        self._history = history_fold(project, row)
        news_of = log_lines(self._history.apply) if self._history is not None else lambda _: []
        self._narrator = Narrator(news_of=news_of)
        self._review: tuple[int, ReviewHistory | None] = (-1, None)

    @property
    def timeline(self) -> Timeline:
        """What happened so far."""
        return self._narrator.timeline

    @property
    def review(self) -> ReviewHistory | None:
        """The history of its review; None if its notation has no reviews."""
        if self._review[0] != self.head:
            review = self._history.history if self._history is not None else None
            self._review = (self.head, review)
        return self._review[1]

    def follow(self, project: Project, row: port.RunRow) -> None:
        """Reads what was committed since the last look."""
        for commit in project.store.journal(row.id, self.head):
            for event in _events(project, commit):
                lines = self._narrator.narrate(event)
                self.log.extend(line for line in lines if line.weight is not Weight.DETAIL)
            self.head = commit.seq
        if row.status is not Status.RUNNING and not self.closed:
            self.timeline.close_bill()
            self.closed = True


class FollowedRuns:
    """The runs that someone looks at."""

    def __init__(self) -> None:
        self._runs: OrderedDict[tuple[port.RunId, str, float], FollowedRun] = OrderedDict()
        self._lock = Lock()

    @contextmanager
    def look(self, project: Project, row: port.RunRow) -> Iterator[FollowedRun]:
        """Lends a run as of now; meanwhile no other thread gets it."""
        run = self._find(project, row)
        with run.lock:
            try:
                run.follow(project, row)
            except BaseException:
                # It has read a part of a commit, which must not be applied twice.
                self._drop(run)
                raise
            yield run

    def _drop(self, run: FollowedRun) -> None:
        with self._lock:
            self._runs = OrderedDict((k, v) for k, v in self._runs.items() if v is not run)

    def _find(self, project: Project, row: port.RunRow) -> FollowedRun:
        # A run that was deleted may leave its number and its name to another one.
        key = (row.id, row.name, row.created_at)
        with self._lock:
            run = self._runs.pop(key, None)
            # Once resumed, what counted as lost may have been recorded after all.
            if run is None or (run.closed and run.head < row.head):
                run = FollowedRun(project, row)
            self._runs[key] = run
            while len(self._runs) > MOST_RUNS:
                self._runs.popitem(last=False)
        return run


def _events(project: Project, commit: port.JournalRow) -> Iterator[ev.Event]:
    """Yields the events of a commit; long texts are read only where a review needs them."""
    plain = decode(commit.events, short_digest)
    needed = any(data.get("e") in REVIEW_EVENTS for data in plain)
    for data in decode(commit.events, project.store.blob) if needed else plain:
        yield ev.from_json(data)
