"""Keeps runs in memory while someone watches them, so that each look reads only what is new.

Folding a long review takes longer than showing it, and a page that follows a run asks for it again
and again. A run is folded once, and then event by event, as its journal grows.
"""

from __future__ import annotations

import json
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

from signoff.app.history import history_fold
from signoff.app.project import Project
from signoff.core import events as ev
from signoff.core.codec import decode
from signoff.core.outcome import Status
from signoff.exports.run_record import REVIEW_EVENTS, RunFold, short_digest
from signoff.runtime.narration import LogLine, Narrator, Weight
from signoff.runtime.store_port import JournalRow, RunId, RunRow

if TYPE_CHECKING:
    from signoff.review.history import ReviewHistory
    from signoff.runtime.timeline import Timeline

MOST_RUNS = 8
"""Runs that are kept; the one that was not looked at for the longest time is dropped."""
LOG_LINES = 12


class FollowedRun:
    """A run as of the last look at its journal. Use it only inside `FollowedRuns.look`."""

    def __init__(self, project: Project, row: RunRow) -> None:
        self.definition: Mapping[str, Any] = json.loads(project.store.description(row.id))
        """The definition that it was started with."""
        self.lock = Lock()
        self.head = 0
        """The last commit that was read."""
        self.log: deque[LogLine] = deque(maxlen=LOG_LINES)
        """The latest news of its log."""
        self.closed = False
        """Whether calls in doubt were charged, which is not undone when the run resumes."""
        self._fold = RunFold(history_fold(project, row), Narrator())
        self._review: tuple[int, ReviewHistory | None] = (-1, None)

    @property
    def timeline(self) -> Timeline:
        """What happened, without the run's state."""
        return self._fold.timeline

    @property
    def review(self) -> ReviewHistory | None:
        """The history of its review; None if its notation has no reviews."""
        if self._review[0] != self.head:
            self._review = (self.head, self._fold.review())
        return self._review[1]

    def follow(self, project: Project, row: RunRow) -> None:
        """Reads what was committed since the last look."""
        for commit in project.store.journal(row.id, self.head):
            for event in _events(project, commit):
                lines = self._fold.apply(event)
                self.log.extend(line for line in lines if line.weight is not Weight.DETAIL)
            self.head = commit.seq
        if row.status is not Status.RUNNING and not self.closed:
            self.timeline.close_bill()
            self.closed = True


class FollowedRuns:
    """The runs that someone looks at."""

    def __init__(self) -> None:
        self._runs: OrderedDict[tuple[RunId, str, float], FollowedRun] = OrderedDict()
        self._lock = Lock()

    @contextmanager
    def look(self, project: Project, row: RunRow) -> Iterator[FollowedRun]:
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

    def _find(self, project: Project, row: RunRow) -> FollowedRun:
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


def _events(project: Project, commit: JournalRow) -> Iterator[ev.Event]:
    """Yields the events of a commit; long texts are read only where a review needs them."""
    plain = decode(commit.events, short_digest)
    needed = any(data.get("e") in REVIEW_EVENTS for data in plain)
    for data in decode(commit.events, project.store.blob) if needed else plain:
        yield ev.from_json(data)
