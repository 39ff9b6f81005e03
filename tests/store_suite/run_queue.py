"""Tests that runs are handed to workers: queued, claimed by one of them, and never lost."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from signoff.core.outcome import FINAL, Status
from signoff.runtime.store_port import FORGOTTEN_SECONDS, Owner, Store
from tests.store_suite.journal_writer import (
    ANN,
    BOB,
    JournalWriter,
    StoreFixture,
    new_request,
    start_run,
)

CAT = Owner("cat", "host-3", 303, "birth-3")
HOUR = 3600.0


class QueueTests(StoreFixture):
    """Queued runs, claims and workers."""

    def test_a_run_that_was_handed_over_is_claimed_once(self, store: Store) -> None:
        """Two workers on one run would pay for everything twice."""
        _queued(store)

        (claimed,) = _claim(store, BOB)

        assert (claimed.name, claimed.owner, claimed.status) == ("run", "bob", Status.QUEUED)
        assert _claim(store, CAT) == []
        assert _claim(store, BOB) == []

    def test_a_run_that_no_one_handed_over_is_never_claimed(self, store: Store) -> None:
        """A run that a user drives on a terminal belongs to that user."""
        start_run(store, "waits").wait()
        start_run(store, "due").append(status=Status.PARKED, due_at=1.0, release=True)
        start_run(store, "dead")

        assert _claim(store, BOB, alive=False) == []

    def test_runs_are_claimed_in_the_order_in_which_they_were_queued(self, store: Store) -> None:
        """Otherwise an old run could wait forever behind new ones."""
        for name in ("first", "second", "third"):
            _queued(store, name)

        assert [row.name for row in _claim(store, BOB, limit=2)] == ["first", "second"]
        assert [row.name for row in _claim(store, CAT, limit=2)] == ["third"]

    def test_a_worker_claims_only_what_it_can_do(self, store: Store) -> None:
        """A worker without an agent would fail every run that asks it."""
        _queued(store, "plain", needs=())
        _queued(store, "both", needs=("agent:claude", "gpu"))
        _queued(store, "one", needs=("gpu",))

        assert store.row("both").needs == ("agent:claude", "gpu")
        assert [row.name for row in _claim(store, BOB, "gpu", "other")] == ["plain", "one"]
        assert [row.name for row in _claim(store, CAT, "gpu", "agent:claude")] == ["both"]

    def test_an_answered_run_is_claimed_and_an_open_one_is_not(self, store: Store) -> None:
        """Humans answer while no process drives the run."""
        run = start_run(store, needs=())
        run.wait(opened=[new_request()])
        assert _claim(store, BOB) == []
        (item,) = store.items("run")

        store.answer(item.id, "{}", "ann", 1.0, "shown")

        assert [row.name for row in _claim(store, BOB)] == ["run"]

    @pytest.mark.parametrize("status", [Status.PARKED, Status.WAITING])
    def test_a_run_is_claimed_when_it_is_due(self, store: Store, status: Status) -> None:
        """A quota that is full again, or a deadline, continues a run without a human."""
        now = time.time()
        for name, due_at in (("early", now - 5), ("late", now + HOUR)):
            start_run(store, name, needs=()).append(status=status, due_at=due_at, release=True)

        assert [row.name for row in _claim(store, BOB)] == ["early"]

    @pytest.mark.parametrize("alive", [True, False])
    def test_only_the_run_of_a_dead_worker_is_claimed_by_another(
        self, store: Store, alive: bool
    ) -> None:
        """After kill -9 the next worker continues, and never beside a living one."""
        store.beat(ANN)
        start_run(store, needs=())

        assert [row.name for row in _claim(store, BOB, alive=alive)] == ([] if alive else ["run"])

    def test_a_worker_that_dies_before_it_takes_a_claimed_run_loses_nothing(
        self, store: Store
    ) -> None:
        """Between claim and take a process can be killed too."""
        _queued(store)
        _claim(store, BOB)

        assert [row.name for row in _claim(store, CAT, alive=False)] == ["run"]

    def test_a_claim_reaches_no_journal_and_no_fence(self, store: Store) -> None:
        """A worker that claims a run has to take it before it can write."""
        run = _queued(store)
        before = store.row("run")

        _claim(store, BOB)

        assert store.row("run") == before._replace(owner="bob")
        assert len(store.journal(run.run)) == before.head

    @pytest.mark.parametrize(
        "status", [Status.WAITING, Status.PARKED, Status.INTERRUPTED, Status.FAILED, Status.BUDGET]
    )
    def test_a_run_that_rests_can_be_queued(self, store: Store, status: Status) -> None:
        """This is how a run that was started on a terminal is handed to workers."""
        run = start_run(store)
        run.append(status=status, reason="why", due_at=9e9, release=True)

        assert store.enqueue(run.run, ["gpu"], lambda _owner: True)

        row = store.row("run")
        assert (row.status, row.reason, row.due_at) == (Status.QUEUED, "", None)
        assert row.needs == ("gpu",)
        assert [each.name for each in _claim(store, BOB, "gpu")] == ["run"]

    @pytest.mark.parametrize("status", sorted(FINAL))
    def test_a_run_that_has_ended_is_not_queued(self, store: Store, status: Status) -> None:
        """It would be shown as queued forever."""
        run = start_run(store)
        run.append(status=status, release=True)

        assert not store.enqueue(run.run, [], lambda _owner: True)

        assert store.row("run").status is status

    def test_a_run_that_a_process_drives_is_not_queued(self, store: Store) -> None:
        """Its process sees the answer by itself; a queued row would hide that it runs."""
        store.beat(ANN)
        run = start_run(store)
        before = store.row("run")

        assert not store.enqueue(run.run, [], lambda _owner: True)

        assert store.row("run") == before

    def test_workers_are_listed_with_their_load_until_they_leave(self, store: Store) -> None:
        """Operators see who works, and a run that no one can take is noticed."""
        _queued(store)
        first = store.register(BOB, 4, ["gpu"])
        second = store.register(CAT, 1, [])
        _claim(store, BOB)

        rows = store.workers(lambda _owner: True)

        assert first < second
        assert [(w.number, w.owner, w.slots, w.running, w.capabilities) for w in rows] == [
            (first, BOB, 4, 1, ("gpu",)),
            (second, CAT, 1, 0, ()),
        ]
        assert abs(rows[0].started_at - time.time()) < HOUR
        assert store.register(BOB, 0, ["gpu", "agent:claude"]) == first
        assert store.workers(lambda _owner: True)[0][2:5] == (0, 1, ("agent:claude", "gpu"))
        store.leave(BOB)
        assert [w.owner for w in store.workers(lambda _owner: True)] == [CAT]
        assert store.row("run").owner is None

    def test_a_worker_that_cannot_be_seen_is_listed_until_its_lease_ends(
        self, store: Store
    ) -> None:
        """A worker that died on another host, or is stopped, can take no run."""
        store.register(BOB, 4, [])
        assert len(store.workers(lambda _owner: None)) == 1

        store.beat(BOB, lease_seconds=0.0)

        assert store.workers(lambda _owner: None) == []
        assert store.workers(lambda _owner: True) == []

    def test_dead_workers_are_removed_once_they_have_no_runs(self, store: Store) -> None:
        """A killed worker cannot leave; every claim looks at all that are listed."""
        _queued(store)
        store.register(BOB, 4, [])
        store.register(CAT, 4, [])
        _claim(store, BOB)
        for owner in (BOB, CAT):
            store.beat(owner, -2 * FORGOTTEN_SECONDS)

        store.register(ANN, 1, [])
        assert store.owner(CAT.id, lambda _owner: True) is None
        # Only who was not removed is a worker again when it beats.
        for owner in (BOB, CAT):
            store.beat(owner)
        assert [w.owner for w in store.workers(lambda _owner: True)] == [BOB, ANN]

        store.beat(BOB, -2 * FORGOTTEN_SECONDS)
        _claim(store, ANN, alive=False)
        store.register(ANN, 1, [])
        store.beat(BOB)
        assert [w.owner for w in store.workers(lambda _owner: True)] == [ANN]

    def test_workers_that_claim_at_the_same_time_share_the_runs(self, store: Store) -> None:
        """Each run is claimed by exactly one of them, and none is left."""
        for number in range(60):
            _queued(store, f"run-{number}")
        owners = [Owner(f"worker-{n}", "host", n, "birth") for n in range(4)]
        claimed: dict[str, list[str]] = {owner.id: [] for owner in owners}

        def work(owner: Owner) -> None:
            own = store.reopen()
            while rows := own.claim(owner, [], lambda _owner: True, 3):
                claimed[owner.id] += [row.name for row in rows]
            if own is not store:
                own.close()

        threads = [threading.Thread(target=work, args=(owner,)) for owner in owners]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        names = [name for of_owner in claimed.values() for name in of_owner]
        assert sorted(names) == sorted(f"run-{number}" for number in range(60))


def _queued(store: Store, name: str = "run", needs: tuple[str, ...] = ()) -> JournalWriter:
    writer = JournalWriter(store, name)
    writer.begin(needs=needs, status=Status.QUEUED, release=True)
    return writer


def _claim(
    store: Store, owner: Owner, *capabilities: str, alive: bool = True, limit: int = 10
) -> list[Any]:
    return store.claim(owner, capabilities, lambda _owner: alive, limit)
