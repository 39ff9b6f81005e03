"""Steps that end at the same time share one commit.

A SQLite file has one writer at a time, and each commit waits for the disk. So a thread whose turn
it is also does the work of those that wait: a thousand items that end together need a fraction of
a thousand commits. Each work succeeds or fails as it would alone, in some order.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any

from signoff.guarded_db.ports import Connection
from signoff.guarded_db.staging import Applied, StepWork, apply, apply_together
from signoff.guarded_db.view import Reader

MOST_TOGETHER = 32
"""Others can use the file in between."""


@dataclass(eq=False)
class _Waiting:
    """The work of one thread."""

    work: StepWork
    end: Applied | None = None


class GroupCommit:
    """Applies the work of threads in turn, and several at once where that is possible."""

    def __init__(self, db: Connection, reader: Reader, lock: AbstractContextManager[Any]) -> None:
        """`lock` is held while the connection is used; `reader` is what conditions read with."""
        self._db = db
        self._reader = reader
        self._lock = lock
        self._waiting: list[_Waiting] = []

    def apply(self, work: StepWork) -> Applied:
        """Applies work when it is its turn, or waits for another thread that does."""
        own = _Waiting(work)
        self._waiting.append(own)
        try:
            with self._lock:
                return own.end or self._apply_with_others(own)
        finally:
            self._waiting.remove(own)

    def _apply_with_others(self, own: _Waiting) -> Applied:
        group = [own, *self._others(own)]
        if len(group) > 1:
            # What fails may end the transaction of all. Alone, each work gets its own error.
            with suppress(Exception):
                works = [each.work for each in group]
                ends = apply_together(self._db, self._reader, works)
                for each, end in zip(group, ends, strict=True):
                    each.end = end
                return ends[0]
        # The others take their own turns.
        return apply(self._db, self._reader, own.work)

    def _others(self, own: _Waiting) -> list[_Waiting]:
        # A server groups the commits of its sessions itself.
        if self._db.dialect != "sqlite" or not own.work.is_quick:
            return []
        waiting = [each for each in list(self._waiting) if each is not own and each.end is None]
        return [each for each in waiting if each.work.is_quick][: MOST_TOGETHER - 1]
