"""Tests that a run has one owner, and that the run of a dead owner can be taken over."""

from __future__ import annotations

import pytest

from signoff.core.errors import RunBusy
from signoff.core.outcome import Status
from signoff.core.remedies import CancelRun
from signoff.runtime.store_port import LEASE_SECONDS, SILENT_SECONDS, DispatchToken, Owner, Store
from tests.store_suite.journal_writer import ANN, BOB, JournalWriter, StoreFixture, start_run

ENDED = -9.0
"""The seconds of a lease that has ended already."""


class LeaseTests(StoreFixture):
    """Leases, heartbeats, fences and cancel requests."""

    def test_a_waiting_run_can_be_taken_by_any_owner(self, store: Store) -> None:
        """This is how a run started in one process is resumed in another."""
        run = start_run(store)
        run.wait()

        fence = _take(run, BOB, alive=True)

        assert fence == 2
        assert (store.row("run").owner, store.row("run").fence) == ("bob", 2)

    def test_an_owner_is_listed_until_it_leaves(self, store: Store) -> None:
        """Whether a run is really active is only visible from its owner."""
        store.beat(ANN)
        run = start_run(store)
        _take(run, BOB, alive=False)

        assert [store.owner(each, lambda _owner: True) for each in ("ann", "bob")] == [ANN, BOB]
        store.leave(ANN)
        assert store.owner("ann", lambda _owner: True) is None

    def test_an_owner_that_cannot_be_seen_is_believed_until_its_lease_ends(
        self, store: Store
    ) -> None:
        """A run of a process that died on another host would be shown as running forever."""
        store.beat(ANN)
        assert store.owner("ann", lambda _owner: None) == ANN

        store.beat(ANN, lease_seconds=0.0)
        assert store.owner("ann", lambda _owner: None) is None
        assert store.owner("ann", lambda _owner: True) is None

    def test_the_error_for_a_busy_run_names_the_host_and_the_remedy(self, store: Store) -> None:
        """The part of the host that identifies the boot is of no use to a user."""
        elsewhere = Owner("ann", "desk/1234abcd/pid:[4026]", 101, "birth-1")
        store.beat(elsewhere)
        run = start_run(store)

        with pytest.raises(RunBusy, match=r"process 101 on desk$") as raised:
            _take(run, BOB, alive=True)

        assert raised.value.remedies == (CancelRun("run"),)

    def test_a_run_with_a_living_owner_is_refused(self, store: Store) -> None:
        """Two runners on one run would pay for everything twice."""
        store.beat(ANN)
        run = start_run(store)
        before = store.row("run")

        with pytest.raises(RunBusy, match="run"):
            _take(run, BOB, alive=True)

        assert store.row("run") == before
        assert run.append().accepted

    def test_a_dead_owners_run_is_taken_over_at_once(self, store: Store) -> None:
        """After a crash, users should not have to wait for a lease to expire."""
        store.beat(ANN)
        run = start_run(store)

        assert _take(run, BOB, alive=False) == 2
        assert store.row("run").owner == "bob"

    @pytest.mark.parametrize("alive", [None, True])
    @pytest.mark.parametrize(("lease_seconds", "taken"), [(99.0, False), (ENDED, True)])
    def test_an_owner_keeps_its_run_until_the_lease_ends(
        self, store: Store, lease_seconds: float, taken: bool, alive: bool | None
    ) -> None:
        """The only sign of life is the heartbeat: a process may exist and be stopped for hours.

        It ends by the clock of the store: the clocks of two hosts may differ by minutes.
        """
        store.beat(ANN, lease_seconds)
        run = start_run(store)

        if taken:
            assert _take(run, BOB, alive=alive) == 2
            assert not run.append().accepted
        else:
            with pytest.raises(RunBusy):
                _take(run, BOB, alive=alive)

    def test_a_heartbeat_renews_the_lease(self, store: Store) -> None:
        """A step that takes an hour must not lose its run."""
        store.beat(ANN, ENDED)
        run = start_run(store)

        store.beat(ANN)

        with pytest.raises(RunBusy):
            _take(run, BOB, alive=None)

    def test_a_runner_that_lost_its_run_cannot_commit(self, store: Store) -> None:
        """Its next commit would land in the new owner's journal."""
        store.beat(ANN)
        run = start_run(store)
        fence = _take(run, BOB, alive=False)

        assert not run.append(status=Status.COMPLETED, release=True).accepted
        assert store.row("run").owner == "bob"
        assert store.row("run").status is Status.RUNNING
        run.fence = fence
        assert run.append().accepted

    def test_each_take_raises_the_fence(self, store: Store) -> None:
        """Runner A, then B, then A again: a late commit of A's first lease must be refused."""
        run = start_run(store)

        fences = [_take(run, who, alive=False) for who in (BOB, ANN, BOB)]

        assert fences == [2, 3, 4]

    def test_an_owner_that_leaves_releases_its_runs(self, store: Store) -> None:
        """A process that ends normally must not leave runs locked."""
        store.beat(ANN)
        store.beat(BOB)
        start_run(store, "anns")
        bobs = start_run(store, "bobs")
        _take(bobs, BOB, alive=False)

        store.leave(ANN)

        assert store.row("anns").owner is None
        assert store.row("bobs").owner == "bob"

    @pytest.mark.parametrize(
        ("alive", "renewed_seconds_ago"),
        [(None, SILENT_SECONDS), (True, SILENT_SECONDS), (False, 0)],
    )
    def test_a_later_attempt_takes_the_run_of_a_silent_or_dead_owner(
        self, store: Store, alive: bool | None, renewed_seconds_ago: float
    ) -> None:
        """A dispatcher on another host notices a dead worker sooner than its lease ends."""
        run = start_run(store)
        first = _attempt(run, ANN, 1)
        store.beat(ANN, LEASE_SECONDS - renewed_seconds_ago)

        second = _attempt(run, BOB, 2, alive=alive)

        assert (first, second, store.row("run").owner) == (2, 3, "bob")
        run.fence = first
        assert not run.append().accepted

    @pytest.mark.parametrize("alive", [None, True])
    def test_a_later_attempt_takes_nothing_from_an_owner_that_beats(
        self, store: Store, alive: bool | None
    ) -> None:
        """After a dispatcher was away, it believes all attempts dead; calls would be repeated."""
        run = start_run(store)
        run.fence = _attempt(run, ANN, 1)
        store.beat(ANN)

        with pytest.raises(RunBusy):
            _attempt(run, BOB, 2, alive=alive)

        assert store.row("run").owner == "ann"
        assert run.append().accepted

    def test_an_earlier_attempt_never_takes_the_run_back(self, store: Store) -> None:
        """A worker that was paused past its attempt would drive beside its successor."""
        run = start_run(store)
        _attempt(run, BOB, 2)

        for attempt in (1, 2):
            with pytest.raises(RunBusy):
                _attempt(run, ANN, attempt)

        assert store.row("run").owner == "bob"

    @pytest.mark.parametrize("dispatch", [None, "another"])
    def test_an_attempt_takes_nothing_from_an_owner_outside_its_dispatch(
        self, store: Store, dispatch: str | None
    ) -> None:
        """A user who resumes a run on a terminal keeps it."""
        run = start_run(store)
        token = DispatchToken(dispatch, 1) if dispatch is not None else None
        store.take(run.run, BOB, lambda _owner: False, token=token)

        with pytest.raises(RunBusy):
            _attempt(run, ANN, 9)

    def test_the_first_attempt_takes_a_run_that_rests(self, store: Store) -> None:
        """A dispatcher may count its attempts from 1 again for each rest of the run."""
        run = start_run(store)
        run.fence = _attempt(run, BOB, 5)
        run.wait()

        assert _attempt(run, ANN, 1) == 3

    def test_a_request_to_cancel_reaches_the_owner(self, store: Store) -> None:
        """`cancel` from another terminal stops the run in its own process."""
        run = start_run(store, "mine")
        start_run(store, "other")
        theirs = start_run(store, "theirs")
        _take(theirs, BOB, alive=False)

        store.ask_cancel(run.run, "too expensive")
        store.ask_cancel(theirs.run, "bored")

        assert store.cancels(ANN) == [("mine", "too expensive")]
        assert store.cancels(BOB) == [("theirs", "bored")]
        assert store.row("mine").cancel == "too expensive"

    def test_taking_a_run_clears_its_cancel_request(self, store: Store) -> None:
        """A run that is resumed on purpose must not be stopped by yesterday's request."""
        run = start_run(store)
        store.ask_cancel(run.run, "too expensive")

        _take(run, BOB, alive=False)

        assert store.cancels(BOB) == []
        assert store.row("run").cancel is None


def _attempt(run: JournalWriter, owner: Owner, attempt: int, *, alive: bool | None = True) -> int:
    """Takes a run for an attempt of one dispatch; `alive` is what is known about its owner."""
    token = DispatchToken("dispatch", attempt)
    return run.store.take(run.run, owner, lambda _owner: alive, token=token)


def _take(run: JournalWriter, owner: Owner, *, alive: bool | None) -> int:
    """Takes a run for an owner; `alive` is what is known about its current owner."""
    return run.store.take(run.run, owner, lambda _owner: alive)
