"""Steps that end at the same time share a commit, and each ends as it would alone."""

import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from signoff.guarded_db.client import Connections
from signoff.guarded_db.staging import (
    Applied,
    Committed,
    Marker,
    Postcondition,
    RolledBack,
    StepWork,
)
from tests.patience import PATIENCE_SECONDS, wait_until

SCHEMA = """
CREATE TABLE books (id INTEGER PRIMARY KEY, title TEXT NOT NULL UNIQUE);
CREATE TABLE chapters (
    book INTEGER REFERENCES books (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TRIGGER no_comics BEFORE INSERT ON books WHEN NEW.title = 'Comic'
BEGIN SELECT RAISE(ROLLBACK, 'no comics'); END;
"""
ADD = "INSERT INTO books (title) VALUES (?)"
ALWAYS = Postcondition("always", lambda _view: True, quick=True)
NEVER = Postcondition("never", lambda _view: False, "it may not", quick=True)


class Shelf:
    """A database whose commits are counted."""

    def __init__(self, path: Path) -> None:
        with closing(sqlite3.connect(path)) as db:
            db.executescript(SCHEMA)
        self._path = path
        self.connections = Connections(str(path))
        self.commits = 0
        with self.connections.writer() as client:
            # Creates the table of markers.
            client.staged().apply([], marker=Marker("run", "first", 1))
            client._db._db.set_trace_callback(self._count)  # type: ignore[attr-defined]  # SQLite's

    def _count(self, sql: str) -> None:
        self.commits += sql.endswith("COMMIT")

    def apply_at_once(
        self, *works: tuple[Sequence[Any], Sequence[Postcondition]], marker: str = ""
    ) -> list[Applied | Exception]:
        """Applies work in threads that all wait for their turn before the first one gets it."""
        ends: dict[int, Applied | Exception] = {}

        def apply(number: int) -> None:
            (sql, *values), conditions = works[number]
            staged = self.connections.reader().staged()
            staged.stage(sql, *values)
            item = Marker("run", "step", 1, marker or f"item {number}")
            work = StepWork(staged._statements, conditions, item, note=str(number))
            try:
                ends[number] = self.connections.apply(work)
            except Exception as error:  # noqa: BLE001  # compared by the test
                ends[number] = error

        threads = [threading.Thread(target=apply, args=(each,)) for each in range(len(works))]
        with self.connections._turn:
            for thread in threads:
                thread.start()
            wait_until(lambda: len(self.connections._waiting) == len(works))
        for thread in threads:
            thread.join(PATIENCE_SECONDS)
        return [ends[number] for number in range(len(works))]

    def column(self, sql: str) -> list[Any]:
        with closing(sqlite3.connect(self._path)) as db:
            return [value for (value,) in db.execute(sql)]

    @property
    def titles(self) -> set[str]:
        return set(self.column("SELECT title FROM books"))

    @property
    def items(self) -> set[str]:
        return set(self.column("SELECT item FROM signoff_steps WHERE step = 'step'"))


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "shelf.db")


def test_steps_that_wait_share_one_commit(shelf: Shelf) -> None:
    """A thousand items would wait for the disk a thousand times otherwise."""
    works = [((ADD, [f"Book {number}"]), [ALWAYS]) for number in range(20)]

    ends = shelf.apply_at_once(*works)

    assert ends == [Committed(1)] * 20
    assert len(shelf.titles) == len(shelf.items) == 20
    assert shelf.commits == 1


def test_a_step_whose_condition_fails_is_undone_alone(shelf: Shelf) -> None:
    """Its neighbors have done their work, and must not be tried again."""
    ends = shelf.apply_at_once(
        ((ADD, ["Emma"]), [ALWAYS]),
        ((ADD, ["Dune"]), [NEVER]),
        ((ADD, ["Ulysses"]), [ALWAYS]),
        ((ADD, ["Emma"]), [ALWAYS]),
    )

    assert sorted(type(end).__name__ for end in ends) == ["Committed"] * 2 + ["RolledBack"] * 2
    assert ends[1] == RolledBack(("it may not",))
    assert shelf.titles == {"Emma", "Ulysses"}
    assert len(shelf.items) == 2
    assert shelf.commits == 1


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ((ADD, ["Comic"]), "no comics"),
        (("INSERT INTO chapters (book) VALUES (99)",), "FOREIGN KEY constraint failed"),
    ],
)
def test_what_ends_the_transaction_of_all_fails_only_its_own_step(
    shelf: Shelf, statement: Sequence[Any], reason: str
) -> None:
    """A trigger may roll everything back, and a deferred constraint fails with the commit."""
    ends = shelf.apply_at_once(
        ((ADD, ["Emma"]), [ALWAYS]), (statement, [ALWAYS]), ((ADD, ["Dune"]), [ALWAYS])
    )

    assert ends[0] == ends[2] == Committed(1)
    assert reason in str(ends[1])
    assert shelf.titles == {"Emma", "Dune"}
    assert shelf.items == {"item 0", "item 2"}
    assert shelf.column("SELECT book FROM chapters") == []


def test_two_attempts_at_one_step_are_committed_once(shelf: Shelf) -> None:
    """An attempt that was abandoned may still be waiting when the next one ends."""
    works = [((ADD, [title]), [ALWAYS]) for title in ("Emma", "Dune")]

    ends = shelf.apply_at_once(*works, marker="the same")

    assert sorted(ends, key=str) == [Committed(0, already=True), Committed(1)]
    assert len(shelf.titles) == 1


def test_conditions_see_the_work_of_their_own_step(shelf: Shelf) -> None:
    """They are checked before anything is committed."""

    def there(title: str) -> Postcondition:
        sql = "SELECT 1 FROM books WHERE title = ?"
        return Postcondition("there", lambda view: view.exists(sql, [title]), quick=True)

    ends = shelf.apply_at_once(
        ((ADD, ["Emma"]), [there("Emma")]), ((ADD, ["Dune"]), [there("Persuasion")])
    )

    assert ends[0] == Committed(1)
    assert isinstance(ends[1], RolledBack)
    assert shelf.titles == {"Emma"}


def slow(then: Callable[[], object]) -> Postcondition:
    return Postcondition("slow", lambda _view: then() is None)


def test_no_step_waits_for_the_slow_condition_of_another(shelf: Shelf) -> None:
    """A function may take seconds; the work of others is committed without it."""
    committed_before: list[set[str]] = []
    first = slow(lambda: committed_before.append(shelf.titles))

    ends = shelf.apply_at_once(
        ((ADD, ["Emma"]), [first]), ((ADD, ["Dune"]), [first]), ((ADD, ["Ulysses"]), [first])
    )

    assert ends == [Committed(1)] * 3
    assert [len(titles) for titles in committed_before] == [0, 1, 2]
    assert shelf.commits == 3
