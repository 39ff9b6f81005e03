"""Tests of what a store tells about commits of other processes."""

from __future__ import annotations

from signoff.core.outcome import Status
from signoff.runtime.store_port import Store
from tests.store_suite.journal_writer import StoreFixture, start_run


class NewsTests(StoreFixture):
    """What an open page learns about commits of other processes."""

    def test_a_reader_gets_what_was_committed_since_its_position(self, store: Store) -> None:
        """It shows exactly what it missed, however long it was away."""
        first = start_run(store, "a")
        start_run(store, "b")
        position = store.news(None).last
        first.append()

        news = store.news(position)

        assert [(row.name, row.head) for row in news.rows] == [("a", 2)]
        assert news.complete
        assert store.news(news.last).rows == []
        assert news.last == (first.run, 2)

    def test_a_position_that_was_deleted_is_reported(self, store: Store) -> None:
        """The numbers of deleted commits may be given out again, so nothing else is sure."""
        start_run(store, "kept")
        gone = start_run(store, "gone")
        gone.append(release=True, status=Status.COMPLETED)
        position = store.news(None).last
        store.delete(gone.run, lambda _owner: False)
        start_run(store, "newer")

        assert store.news(position).complete is False

    def test_changes_without_a_commit_in_a_journal_are_noticed(self, store: Store) -> None:
        """An answer or a deletion changes what a page shows, too."""
        run = start_run(store, "a")
        run.append(release=True, status=Status.COMPLETED)
        before = store.news(None)
        version = store.changes()
        assert store.changes() == version

        store.delete(run.run, lambda _owner: False)

        assert store.news(before.last).others != before.others
        other = store.reopen()
        start_run(other, "b")
        assert store.changes() != version
        other.close()
