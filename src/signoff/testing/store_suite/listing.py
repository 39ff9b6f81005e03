"""Tests of the lists of runs."""

from __future__ import annotations

from signoff.core.outcome import Status
from signoff.runtime.store_port import Store
from signoff.testing.store_suite.journal_writer import StoreFixture, start_run


class ListingTests(StoreFixture):
    """Lists of runs, and their filters."""

    def test_runs_are_listed_newest_first(self, store: Store) -> None:
        """`latest` is the first of them."""
        for name in ("a", "b", "c"):
            start_run(store, name)
        start_run(store, "a2").append()

        assert [row.name for row in store.rows()] == ["a2", "c", "b", "a"]
        assert [row.name for row in store.rows(limit=2)] == ["a2", "c"]

    def test_an_empty_store_has_no_runs(self, store: Store) -> None:
        """A user's first command may be one that lists runs."""
        assert store.rows() == []
        assert store.items() == []

    def test_runs_are_found_by_status(self, store: Store) -> None:
        """Waiting runs have to be found among thousands that have ended."""
        start_run(store, "running")
        start_run(store, "waiting").wait()
        start_run(store, "done").append(status=Status.COMPLETED, release=True)

        waiting = store.rows(status=[Status.WAITING])
        ended_or_running = store.rows(status=[Status.COMPLETED, Status.RUNNING])

        assert [row.name for row in waiting] == ["waiting"]
        assert [row.name for row in ended_or_running] == ["done", "running"]

    def test_runs_are_found_by_due_time(self, store: Store) -> None:
        """`resume --due` resumes these when they are due and not earlier."""
        start_run(store, "early").append(status=Status.PARKED, due_at=100.0)
        start_run(store, "late").append(status=Status.PARKED, due_at=200.0)
        start_run(store, "deadline").append(status=Status.WAITING, due_at=150.0)
        start_run(store, "whenever").append(status=Status.PARKED)

        def due(before: float, *status: Status) -> list[str]:
            return [row.name for row in store.rows(due_before=before, status=status)]

        assert due(99.9) == []
        assert due(100.0) == ["early"]
        assert due(1000.0) == ["deadline", "late", "early"]
        assert due(1000.0, Status.PARKED) == ["late", "early"]
