"""Tests that runs are deleted with all that only they used, and that backups are complete."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from signoff.core.digest import text_digest
from signoff.core.errors import RunBusy, StoreDamaged, StoreError, UnknownName
from signoff.core.requests import ItemState
from signoff.core.spend import LedgerEntry
from signoff.runtime.store_port import Store
from signoff.store.sqlite import SqliteStore
from tests.store_suite.journal_writer import ANN, StoreFixture, new_request, start_run


class UpkeepTests(StoreFixture):
    """Deleting runs, and backups."""

    def test_a_deleted_run_leaves_nothing(self, store: Store) -> None:
        """Users delete runs because of what is in them."""
        run = start_run(store)
        run.append(opened=[new_request()], ledger=[LedgerEntry("s", "a", "m", 1, 1, 1, 0.1, 0, 0)])
        store.keep_late(run.run, "ask#1", 1, "{}")
        store.keep_summaries(1, [(run.run, run.head, "{}")])
        run.wait()

        store.delete(run.run, lambda _owner: False)

        with pytest.raises(UnknownName):
            store.row("run")
        assert store.rows() == []
        assert store.items(state=tuple(ItemState)) == []
        assert store.journal(run.run) == []
        assert store.ledger(run.run) == []
        assert store.late(run.run) == {}
        assert store.summaries(1) == {}

    def test_texts_that_other_runs_use_stay(self, store: Store) -> None:
        """An artifact that two runs share is stored once."""
        shared, own = text_digest("shared"), text_digest("own")
        one, two = start_run(store, "one"), start_run(store, "two")
        for run, digests in ((one, [shared, own]), (two, [shared])):
            texts = {digest: "shared" if digest == shared else "own" for digest in digests}
            run.append(blobs=texts, events=json.dumps([{"$blob": each} for each in digests]))
            run.wait()

        store.delete(one.run, lambda _owner: False)

        assert store.blob(shared) == "shared"
        assert store.description(two.run) == '{"name": "review"}'
        with pytest.raises(StoreDamaged):
            store.blob(own)

    def test_a_run_that_is_driven_is_not_deleted(self, store: Store) -> None:
        """Its process would write into nothing."""
        store.beat(ANN)
        run = start_run(store)

        with pytest.raises(RunBusy):
            store.delete(run.run, lambda _owner: True)

        assert run.append().accepted

    def test_the_number_of_a_deleted_request_is_not_used_again(self, store: Store) -> None:
        """An old command or link would answer a request of another run."""
        one = start_run(store, "one")
        one.append(opened=[new_request()])
        (old,) = store.items("one")
        one.wait()
        store.delete(one.run, lambda _owner: False)

        start_run(store, "two").append(opened=[new_request()])

        (new,) = store.items("two")
        assert new.id > old.id

    def test_a_backup_has_every_run_or_says_how_to_make_one(
        self, store: Store, tmp_path: Path
    ) -> None:
        """A backup that is empty or incomplete is found out too late."""
        start_run(store, "one").wait()
        start_run(store, "two").append(opened=[new_request()])
        target = tmp_path / "backup.db"

        try:
            count = store.backup(target)
        except StoreError:
            with pytest.raises(StoreError, match="back"):
                store.backup(target)
            assert not target.exists()
            return

        copy = SqliteStore(target)
        assert count == len(copy.rows()) == 2
        assert [item.run for item in copy.items()] == ["two"]
        copy.close()
