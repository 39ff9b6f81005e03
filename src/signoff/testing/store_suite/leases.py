"""What a store promises about owners: one runner per run, a dead one's run taken over."""

from __future__ import annotations

import pytest

from signoff.core.outcome import Status
from signoff.errors import RunBusy
from signoff.remedies import CancelRun
from signoff.runtime.store_port import Owner, Store
from signoff.testing.store_suite.fixture import StoreFixture
from signoff.testing.store_suite.journal_writer import ANN, BOB, start_run

NOW = 1000.0


def _lives(_owner: Owner) -> bool:
    return True


def _is_dead(_owner: Owner) -> bool:
    return False


def _cannot_tell(_owner: Owner) -> None:
    return None


class LeaseTests(StoreFixture):
    """Who may drive a run."""

    def test_a_run_at_rest_is_given_to_whoever_asks(self, store: Store) -> None:
        """It is how a run started in one process is resumed in another."""
        run = start_run(store)
        run.wait()

        fence = store.take(run.run, BOB, NOW, _lives)

        assert fence == 2
        assert (store.row("run").owner, store.row("run").fence) == ("bob", 2)

    def test_an_owner_is_known_until_it_leaves(self, store: Store) -> None:
        """Whether a run is really being driven can only be seen by its owner."""
        store.beat(ANN, NOW)
        run = start_run(store)
        store.take(run.run, BOB, NOW, _is_dead)

        assert (store.owner("ann"), store.owner("bob")) == (ANN, BOB)
        store.leave(ANN)
        assert store.owner("ann") is None

    def test_a_run_that_is_driven_names_the_machine_and_the_way_out(self, store: Store) -> None:
        """What tells one boot from the next is no use to a person."""
        elsewhere = Owner("ann", "desk/1234abcd/pid:[4026]", 101, "birth-1")
        store.beat(elsewhere, NOW + 9)
        run = start_run(store)

        with pytest.raises(RunBusy, match=r"process 101 on desk$") as refused:
            store.take(run.run, BOB, NOW, _lives)

        assert refused.value.remedies == (CancelRun("run"),)

    def test_a_run_whose_owner_lives_is_refused(self, store: Store) -> None:
        """Two runners on one run would pay for everything twice."""
        store.beat(ANN, NOW - 999)
        run = start_run(store)
        before = store.row("run")

        with pytest.raises(RunBusy, match="run"):
            store.take(run.run, BOB, NOW, _lives)

        assert store.row("run") == before
        assert run.append().accepted

    def test_a_dead_owners_run_is_taken_over_at_once(self, store: Store) -> None:
        """After a crash nobody wants to wait for a lease to run out."""
        store.beat(ANN, NOW + 999)
        run = start_run(store)

        assert store.take(run.run, BOB, NOW, _is_dead) == 2
        assert store.row("run").owner == "bob"

    def test_the_owner_to_judge_is_the_one_that_holds_the_run(self, store: Store) -> None:
        """Asking after somebody else's life would take runs from the living."""
        store.beat(ANN, NOW)
        store.beat(BOB, NOW)
        run = start_run(store)
        asked: list[Owner] = []

        def judged(owner: Owner) -> bool:
            asked.append(owner)
            return False

        store.take(run.run, BOB, NOW, judged)

        assert asked == [ANN]

    @pytest.mark.parametrize(("until", "taken"), [(NOW + 0.1, False), (NOW, True), (NOW - 9, True)])
    def test_an_owner_nobody_can_see_is_believed_until_its_lease_ends(
        self, store: Store, until: float, taken: bool
    ) -> None:
        """A process on another host can only be judged by its heartbeat."""
        store.beat(ANN, until)
        run = start_run(store)

        if taken:
            assert store.take(run.run, BOB, NOW, _cannot_tell) == 2
        else:
            with pytest.raises(RunBusy):
                store.take(run.run, BOB, NOW, _cannot_tell)

    def test_a_heartbeat_renews_the_lease(self, store: Store) -> None:
        """A step that takes an hour must not lose its run."""
        store.beat(ANN, NOW - 9)
        run = start_run(store)

        store.beat(ANN, NOW + 9)

        with pytest.raises(RunBusy):
            store.take(run.run, BOB, NOW, _cannot_tell)

    def test_an_owner_takes_its_own_run_again_without_being_asked(self, store: Store) -> None:
        """A process resumes a run it has just let wait."""
        store.beat(ANN, NOW + 9)
        run = start_run(store)

        assert store.take(run.run, ANN, NOW, _lives) == 2

    def test_an_owner_the_store_has_forgotten_holds_nothing(self, store: Store) -> None:
        """A run must not stay locked by a name that leads to nobody."""
        run = start_run(store)

        assert store.take(run.run, BOB, NOW, _lives) == 2

    def test_a_runner_whose_run_was_taken_can_add_nothing_to_it(self, store: Store) -> None:
        """Its next commit would land in the new owner's journal."""
        store.beat(ANN, NOW)
        run = start_run(store)
        fence = store.take(run.run, BOB, NOW, _is_dead)

        assert not run.append(status=Status.COMPLETED, release=True).accepted
        assert store.row("run").owner == "bob"
        assert store.row("run").status is Status.RUNNING
        run.fence = fence
        assert run.append().accepted

    def test_each_taking_raises_the_fence(self, store: Store) -> None:
        """Runner A, then B, then A again: A's first life must not be mistaken for its second."""
        run = start_run(store)

        fences = [store.take(run.run, who, NOW, _is_dead) for who in (BOB, ANN, BOB)]

        assert fences == [2, 3, 4]

    def test_an_owner_that_leaves_lets_go_of_its_runs(self, store: Store) -> None:
        """A process that ends in order leaves nothing locked behind."""
        store.beat(ANN, NOW + 9)
        store.beat(BOB, NOW + 9)
        start_run(store, "anns")
        bobs = start_run(store, "bobs")
        store.take(bobs.run, BOB, NOW, _is_dead)

        store.leave(ANN)

        assert store.row("anns").owner is None
        assert store.row("bobs").owner == "bob"

    def test_a_request_to_cancel_reaches_the_owner(self, store: Store) -> None:
        """`cancel` from another terminal stops the run where it is driven."""
        run = start_run(store, "mine")
        start_run(store, "other")
        theirs = start_run(store, "theirs")
        store.take(theirs.run, BOB, NOW, _is_dead)

        store.ask_cancel(run.run, "too dear")
        store.ask_cancel(theirs.run, "bored")

        assert store.cancels(ANN) == [("mine", "too dear")]
        assert store.cancels(BOB) == [("theirs", "bored")]
        assert store.row("mine").cancel == "too dear"

    def test_a_request_to_cancel_is_gone_when_the_run_is_taken_up_again(self, store: Store) -> None:
        """A run that is resumed on purpose must not be stopped by yesterday's request."""
        run = start_run(store)
        store.ask_cancel(run.run, "too dear")

        store.take(run.run, BOB, NOW, _is_dead)

        assert store.cancels(BOB) == []
        assert store.row("run").cancel is None
