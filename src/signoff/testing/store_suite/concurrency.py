"""What a store promises to many users at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

from signoff.errors import InvalidAnswer, RunBusy
from signoff.runtime.store_port import Owner, Store
from signoff.testing.store_suite.fixture import StoreFixture
from signoff.testing.store_suite.journal_writer import JournalWriter, new_request, start_run

T = TypeVar("T")
CROWD = 8


class ConcurrencyTests(StoreFixture):
    """One store, opened several times."""

    def test_a_store_opened_again_sees_and_is_seen(self, store: Store) -> None:
        """The heartbeat and the runner look at the same runs."""
        run = start_run(store)
        again = store.reopen()

        run.append(opened=[new_request()])
        item = again.answer(again.items()[0].id, "{}", "ann", 5.0, "shown")

        assert again.row("run").head == 2
        assert store.item(item.id).state == "answered"
        again.close()
        assert run.append().accepted

    def test_nothing_is_lost_when_many_write_at_once(self, store: Store) -> None:
        """Two terminals, a heartbeat and a web page use one store."""

        def write(number: int, mine: Store) -> int:
            run = JournalWriter(mine, f"run-{number}")
            run.begin()
            for _ in range(20):
                assert run.append(opened=[new_request()], blobs={"ab" * 32: "same"}).accepted
            return len(run.events())

        assert _at_once(store, write) == [21] * CROWD
        assert len(store.rows()) == CROWD
        assert len(store.items()) == 20 * CROWD
        assert len({item.id for item in store.items()}) == 20 * CROWD

    def test_of_many_that_build_on_one_head_one_wins(self, store: Store) -> None:
        """Two commits with the same number would be two histories of one run."""
        run = start_run(store)

        def write(number: int, mine: Store) -> bool:
            (result,) = mine.commit([run.next(events=f"[{number}]")])
            return result.accepted

        won = _at_once(store, write)

        assert won.count(True) == 1
        assert run.events()[1:] == [f"[{won.index(True)}]"]

    def test_of_many_that_answer_one_request_one_is_heard(self, store: Store) -> None:
        """The others are told, instead of believing they decided."""
        start_run(store).append(opened=[new_request()])
        (item,) = store.items()

        def answer(number: int, mine: Store) -> bool:
            try:
                mine.answer(item.id, str(number), f"person-{number}", 5.0, "shown")
            except InvalidAnswer:
                return False
            return True

        heard = _at_once(store, answer)

        assert heard.count(True) == 1
        assert store.item(item.id).answer == str(heard.index(True))

    def test_of_many_that_take_one_run_one_gets_it(self, store: Store) -> None:
        """`resume` typed in eight terminals drives the run once."""
        run = start_run(store)
        run.wait()

        def take(number: int, mine: Store) -> int | None:
            me = Owner(f"owner-{number}", "host", number, "")
            mine.beat(me, 1e12)
            try:
                return mine.take(run.run, me, 0.0, lambda _owner: True)
            except RunBusy:
                return None

        fences = _at_once(store, take)

        assert sorted(f for f in fences if f is not None) == [2]

    def test_of_many_that_choose_one_name_one_gets_it(self, store: Store) -> None:
        """A name leads to one run."""

        def create(number: int, mine: Store) -> bool:
            return JournalWriter(mine, "popular").begin(step=f"step-{number}").accepted

        created = _at_once(store, create)

        assert created.count(True) == 1
        assert store.row("popular").step == f"step-{created.index(True)}"


def _at_once(store: Store, act: Callable[[int, Store], T]) -> list[T]:
    """Does something in several threads at the same time, each with the store opened anew."""
    ready = Barrier(CROWD)

    def one(number: int) -> T:
        mine = store.reopen()
        ready.wait()
        try:
            return act(number, mine)
        finally:
            mine.close()

    with ThreadPoolExecutor(CROWD) as pool:
        return list(pool.map(one, range(CROWD)))
