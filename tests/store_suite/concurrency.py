"""Tests with several concurrent users of one store."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

from signoff.core.errors import InvalidAnswer, RunBusy
from signoff.runtime.store_port import Owner, Store
from tests.store_suite.journal_writer import JournalWriter, StoreFixture, new_request, start_run

T = TypeVar("T")
THREADS = 8


class ConcurrencyTests(StoreFixture):
    """One store, opened several times and used from several threads."""

    def test_a_reopened_store_shares_the_same_runs(self, store: Store) -> None:
        """The heartbeat and the runner use the same runs."""
        run = start_run(store)
        again = store.reopen()

        run.append(opened=[new_request()])
        item = again.answer(again.items()[0].id, "{}", "ann", 5.0, "shown")

        assert again.row("run").head == 2
        assert store.item(item.id).state == "answered"
        again.close()
        assert run.append().accepted

    def test_nothing_is_lost_with_concurrent_writers(self, store: Store) -> None:
        """Two terminals, a heartbeat and a web page use one store."""

        def write(number: int, own_store: Store) -> int:
            run = JournalWriter(own_store, f"run-{number}")
            run.begin()
            for _ in range(20):
                assert run.append(opened=[new_request()], blobs={"ab" * 32: "same"}).accepted
            return len(run.events())

        assert _concurrently(store, write) == [21] * THREADS
        assert len(store.rows()) == THREADS
        assert len(store.items()) == 20 * THREADS
        assert len({item.id for item in store.items()}) == 20 * THREADS

    def test_one_of_many_commits_on_the_same_head_wins(self, store: Store) -> None:
        """Two commits with the same number would be two histories of one run."""
        run = start_run(store)

        def write(number: int, own_store: Store) -> bool:
            (result,) = own_store.commit([run.next(events=f"[{number}]")])
            return result.accepted

        won = _concurrently(store, write)

        assert won.count(True) == 1
        assert run.events()[1:] == [f"[{won.index(True)}]"]

    def test_one_of_many_answers_to_the_same_request_counts(self, store: Store) -> None:
        """The others get an error, so they know that they did not decide."""
        start_run(store).append(opened=[new_request()])
        (item,) = store.items()

        def answer(number: int, own_store: Store) -> bool:
            try:
                own_store.answer(item.id, str(number), f"person-{number}", 5.0, "shown")
            except InvalidAnswer:
                return False
            return True

        accepted = _concurrently(store, answer)

        assert accepted.count(True) == 1
        assert store.item(item.id).answer == str(accepted.index(True))

    def test_one_of_many_owners_gets_a_contested_run(self, store: Store) -> None:
        """`resume` in eight terminals runs the run once."""
        run = start_run(store)
        run.wait()

        def take(number: int, own_store: Store) -> int | None:
            me = Owner(f"owner-{number}", "host", number, "")
            own_store.beat(me, 1e12)
            try:
                return own_store.take(run.run, me, lambda _owner: True)
            except RunBusy:
                return None

        fences = _concurrently(store, take)

        assert sorted(f for f in fences if f is not None) == [2]

    def test_one_of_many_runs_gets_a_contested_name(self, store: Store) -> None:
        """A name identifies one run."""

        def create(number: int, own_store: Store) -> bool:
            return JournalWriter(own_store, "popular").begin(step=f"step-{number}").accepted

        created = _concurrently(store, create)

        assert created.count(True) == 1
        assert store.row("popular").step == f"step-{created.index(True)}"


def _concurrently(store: Store, function: Callable[[int, Store], T]) -> list[T]:
    """Calls a function in several threads at once, each with its own connection."""
    ready = Barrier(THREADS)

    def one(number: int) -> T:
        own_store = store.reopen()
        ready.wait()
        try:
            return function(number, own_store)
        finally:
            own_store.close()

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(one, range(THREADS)))
