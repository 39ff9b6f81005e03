"""Tests that requests to humans are durable, used once and never missed."""

from __future__ import annotations

from typing import Any

import pytest

from signoff.core.errors import InvalidAnswer, StaleApproval, StoreDamaged, UnknownName
from signoff.core.outcome import Status
from signoff.core.requests import ItemState
from signoff.runtime.store_port import InboxItem, Store
from tests.store_suite.journal_writer import START, StoreFixture, new_request, start_run


class InboxTests(StoreFixture):
    """The inbox: opening, listing, answering and withdrawing requests."""

    def test_a_commit_opens_a_request(self, store: Store) -> None:
        """The inbox shows every pending request exactly as the run made it."""
        item = _open_request(store, deadline=START + 60)

        assert store.item(item.id) == item
        assert (item.run, item.effect) == ("run", "ask#1")
        assert (item.kind, item.step) == ("question", "draft")
        assert (item.prompt, item.form) == ("Ship it?", '{"kind":"question","prompt":"Ship it?"}')
        assert (item.digest, item.opened_at, item.deadline) == ("shown", START, START + 60)
        assert (item.state, item.answer, item.answered_by) == ("open", None, None)

    def test_waiting_lists_every_open_request(self, store: Store) -> None:
        """The inbox of a busy project is listed often, so a list must not read every form."""
        start_run(store, "one").append(opened=[new_request("a#1"), new_request("b#1")])
        start_run(store, "two").append(opened=[new_request("c#1", deadline=START + 60)])
        _answer(store, "b#1")

        lines = store.waiting()

        assert [(line.run, line.deadline) for line in lines] == [("one", None), ("two", START + 60)]
        item = store.item(lines[0].id)
        assert lines[0][2:4] == (item.step, item.kind)
        assert lines[0][4:] == (item.prompt, item.opened_at, item.deadline)

    def test_a_single_open_request_can_be_withdrawn(self, store: Store) -> None:
        """The other requests and the answered ones must stay."""
        run = start_run(store)
        run.append(opened=[new_request("a#1"), new_request("b#1"), new_request("c#1")])
        a, b, c = store.items()
        _answer(store, b.effect)

        run.append(withdrawn=[a.id, b.id])

        states = [store.item(item.id).state for item in (a, b, c)]
        assert states == ["withdrawn", "answered", "open"]

    def test_requests_are_listed_oldest_first_by_run_and_by_state(self, store: Store) -> None:
        """Users work through an inbox from the top; a run looks only at its own requests."""
        one = start_run(store, "one")
        one.append(opened=[new_request("a#1"), new_request("b#1")])
        start_run(store, "two").append(opened=[new_request("c#1")])
        one.append(opened=[new_request("d#1")])
        _answer(store, "b#1")

        def effects(run: str | None = None, *state: ItemState) -> list[str]:
            return [item.effect for item in store.items(run, state=state or (ItemState.OPEN,))]

        assert effects() == ["a#1", "c#1", "d#1"]
        assert effects("one") == ["a#1", "d#1"]
        assert effects("one", ItemState.OPEN, ItemState.ANSWERED) == ["a#1", "b#1", "d#1"]
        assert effects("two", ItemState.ANSWERED) == []
        assert effects("unknown") == []

    def test_an_answer_is_stored_with_its_author_and_time(self, store: Store) -> None:
        """An auditor will ask who approved this."""
        item = _open_request(store)

        returned = store.answer(item.id, '{"value":"yes"}', "ann", 5.0, "shown")

        assert returned == store.item(item.id)
        assert (returned.state, returned.answer) == ("answered", '{"value":"yes"}')
        assert (returned.answered_by, returned.answered_at) == ("ann", 5.0)

    def test_a_second_answer_is_refused_and_the_first_one_counts(self, store: Store) -> None:
        """When two people answer the same question, only the first decides."""
        item = _open_request(store)
        store.answer(item.id, '{"value":"yes"}', "ann", 5.0, "shown")

        with pytest.raises(InvalidAnswer):
            store.answer(item.id, '{"value":"no"}', "bob", 6.0, "shown")

        assert store.item(item.id).answer == '{"value":"yes"}'
        assert store.item(item.id).answered_by == "ann"

    def test_an_answer_with_another_digest_is_refused(self, store: Store) -> None:
        """An approval of the previous draft must not approve this one."""
        item = _open_request(store, digest="new")

        with pytest.raises(StaleApproval):
            store.answer(item.id, '{"value":true}', "ann", 5.0, "old")

        assert store.item(item.id).state == "open"
        assert store.answer(item.id, '{"value":true}', "ann", 5.0, "new").state == "answered"

    def test_an_unknown_number_lists_the_open_requests(self, store: Store) -> None:
        """Users mistype numbers."""
        item = _open_request(store)

        for number in (item.id + 1, 10**20):
            with pytest.raises(UnknownName, match=f"#{item.id}"):
                store.item(number)
            with pytest.raises(UnknownName, match=f"#{item.id}"):
                store.answer(number, "{}", "ann", 5.0, "shown")

    def test_an_answer_does_not_fence_the_runner(self, store: Store) -> None:
        """An answer with a journal sequence number would fence the runner that asked."""
        run = start_run(store)
        run.append(opened=[new_request()])
        before = store.row("run")

        _answer(store, "ask#1")

        assert store.row("run") == before
        assert run.append().accepted

    def test_a_run_with_a_new_answer_is_woken_instead_of_waiting(self, store: Store) -> None:
        """With a lost wake-up, a run would wait for an answer that is already there."""
        run = start_run(store)
        run.append(opened=[new_request()])
        _answer(store, "ask#1")

        result = run.wait(due_at=50.0)

        row = store.row("run")
        assert (result.accepted, result.wake) == (True, True)
        assert (row.status, row.owner, row.due_at) == (Status.RUNNING, "ann", None)
        assert row.head == 3

    def test_an_answer_wakes_only_its_own_run(self, store: Store) -> None:
        """A run that is woken for no reason would spin."""
        start_run(store, "other").append(opened=[new_request()])
        _answer(store, "ask#1")
        run = start_run(store)

        result = run.wait(opened=[new_request("mine#1")])

        assert not result.wake
        assert store.row("run").status is Status.WAITING

    def test_an_answer_can_be_used_once(self, store: Store) -> None:
        """If it were used twice, one yes would approve two drafts."""
        run = start_run(store)
        run.append(opened=[new_request()])
        item = _answer(store, "ask#1")

        run.append(used=[item.id])

        assert store.item(item.id).state == "used"
        assert store.items("run", state=(ItemState.OPEN, ItemState.ANSWERED)) == []
        assert not run.wait().wake

    @pytest.mark.parametrize("state", ["open", "used", "withdrawn"])
    def test_a_commit_that_uses_a_missing_answer_fails(self, store: Store, state: str) -> None:
        """Otherwise the run would continue without a decision."""
        run = start_run(store)
        run.append(opened=[new_request()])
        item = _find(store, "ask#1")
        if state == "used":
            _answer(store, "ask#1")
            run.append(used=[item.id])
        elif state == "withdrawn":
            run.append(withdraw=True)
        before = run.events()

        with pytest.raises(StoreDamaged):
            store.commit([run.next(used=[item.id], opened=[new_request("more#1")])])

        assert run.events() == before
        assert store.item(item.id).state == state
        assert [i.effect for i in store.items()] == [i for i in ("ask#1",) if state == "open"]

    def test_withdrawn_requests_cannot_be_answered(self, store: Store) -> None:
        """Users must not spend time on the question of a cancelled run."""
        run = start_run(store)
        other = start_run(store, "other")
        run.append(opened=[new_request("open#1"), new_request("answered#1")])
        other.append(opened=[new_request("theirs#1")])
        _answer(store, "answered#1")

        run.append(withdraw=True)

        assert [i.effect for i in store.items(state=(ItemState.OPEN, ItemState.ANSWERED))] == [
            "theirs#1"
        ]
        gone = store.items("run", state=(ItemState.WITHDRAWN,))
        assert [i.effect for i in gone] == ["open#1", "answered#1"]
        with pytest.raises(InvalidAnswer):
            store.answer(gone[0].id, "{}", "ann", 5.0, "shown")

    def test_a_commit_can_use_one_answer_and_withdraw_the_rest(self, store: Store) -> None:
        """A step that ends by its gate no longer needs its other requests."""
        run = start_run(store)
        run.append(opened=[new_request("gate#1"), new_request("open#1"), new_request("answered#1")])
        _answer(store, "answered#1")
        gate = _answer(store, "gate#1")

        run.append(used=[gate.id], withdraw=True)

        assert store.item(gate.id).state == "used"
        gone = store.items("run", state=(ItemState.WITHDRAWN,))
        assert [i.effect for i in gone] == ["open#1", "answered#1"]


def _open_request(store: Store, **changes: Any) -> InboxItem:
    """Starts a run with one open request."""
    start_run(store).append(opened=[new_request(**changes)])
    return _find(store, "ask#1")


def _find(store: Store, effect: str) -> InboxItem:
    (item,) = [i for i in store.items() if i.effect == effect]
    return item


def _answer(store: Store, effect: str) -> InboxItem:
    item = _find(store, effect)
    return store.answer(item.id, '{"value":"yes"}', "ann", START, item.digest)
