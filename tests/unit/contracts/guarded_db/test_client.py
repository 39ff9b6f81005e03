import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from signoff.contracts.guarded_db.client import (
    MOST_OPEN,
    VALID_SECONDS,
    Confirmations,
    Connections,
    SeenRows,
)
from signoff.contracts.guarded_db.staging import (
    Applied,
    Committed,
    Marker,
    Postcondition,
    RolledBack,
    StepWork,
)
from signoff.core.errors import NotAllowed, UsageError
from signoff.testing import FrozenClock
from tests.patience import PATIENCE_SECONDS, wait_until


def test_opening_the_client_loads_neither_the_parser_nor_a_driver() -> None:
    """Every command would take a tenth of a second longer, for a database that most never use."""
    loaded = (
        "import sys; from signoff.contracts.guarded_db import client, upkeep; "
        "print(*({'sqlglot', 'psycopg', 'pydantic', 'click'} & set(sys.modules)))"
    )

    process = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True)

    assert (process.returncode, process.stdout.strip()) == (0, ""), process.stderr


SCOPE = "DELETE FROM books WHERE id = ?"
SEEN = SeenRows(3, 2, "digest")


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def confirmations(clock: FrozenClock) -> Confirmations:
    return Confirmations(clock.monotonic)


def test_a_token_is_valid_once(confirmations: Confirmations) -> None:
    """One confirmation must not cover a DELETE in a loop."""
    token = confirmations.issue(SCOPE, [1], SEEN)
    assert confirmations.redeem(token, SCOPE, [1]) == SEEN

    with pytest.raises(NotAllowed, match="used before"):
        confirmations.redeem(token, SCOPE, [1])


def test_a_token_is_valid_for_thirty_seconds(
    confirmations: Confirmations, clock: FrozenClock
) -> None:
    """The same condition may match other rows later."""
    in_time, too_late = confirmations.issue(SCOPE, [1], SEEN), confirmations.issue(SCOPE, [1], SEEN)

    clock.advance(VALID_SECONDS)
    confirmations.redeem(in_time, SCOPE, [1])
    clock.advance(0.001)

    with pytest.raises(NotAllowed, match="30 seconds"):
        confirmations.redeem(too_late, SCOPE, [1])


@pytest.mark.parametrize(
    ("scope", "params"),
    [
        ("DELETE FROM chapters WHERE id = ?", [1]),
        ("DELETE FROM books WHERE id > ?", [1]),
        (SCOPE, [2]),
        (SCOPE, ["1"]),
        (SCOPE, []),
    ],
)
def test_a_token_is_for_one_table_one_condition_and_its_values(
    confirmations: Confirmations, scope: str, params: list[object]
) -> None:
    """A token for one row must not delete another."""
    token = confirmations.issue(SCOPE, [1], SEEN)

    with pytest.raises(NotAllowed, match="another table or condition"):
        confirmations.redeem(token, scope, params)


def test_a_token_that_was_tried_on_something_else_is_used_up(
    confirmations: Confirmations,
) -> None:
    """Tokens must not be tried until one fits."""
    token = confirmations.issue(SCOPE, [1], SEEN)
    with pytest.raises(NotAllowed):
        confirmations.redeem(token, SCOPE, [2])

    with pytest.raises(NotAllowed, match="unknown or was used"):
        confirmations.redeem(token, SCOPE, [1])


@pytest.mark.parametrize("token", ["", "made-up"])
def test_without_a_real_token_nothing_is_confirmed(
    confirmations: Confirmations, token: str
) -> None:
    """An agent might invent one."""
    with pytest.raises(NotAllowed, match="ask for a new one"):
        confirmations.redeem(token, SCOPE, [1])


def test_unused_tokens_are_dropped(confirmations: Confirmations) -> None:
    """An agent that only asks for tokens must not fill the memory."""
    first, *_, last = [confirmations.issue(SCOPE, [n], SEEN) for n in range(MOST_OPEN + 1)]

    confirmations.redeem(last, SCOPE, [MOST_OPEN])
    with pytest.raises(NotAllowed, match="unknown"):
        confirmations.redeem(first, SCOPE, [0])


def make(path: Path, words: int) -> Path:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE chapters (words INTEGER)")
        db.execute("INSERT INTO chapters VALUES (?)", [words])
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return make(tmp_path / "book.db", 1)


def words(connections: Connections) -> object:
    return connections.reader().query("SELECT words FROM chapters")[0]["words"]


def test_all_steps_share_one_connection_to_read_and_one_to_write(file: Path) -> None:
    """A thousand items at once must not open a thousand files."""
    connections = Connections(str(file))

    readers = {id(connections.reader()) for _ in range(1000)}
    with connections.writer() as one, connections.writer() as other:
        same = one is other

    assert len(readers) == 1
    assert same
    assert id(one) not in readers


def test_a_file_that_was_replaced_is_opened_again(file: Path, tmp_path: Path) -> None:
    """After a restore by moving a file, the old file must not be changed."""
    connections = Connections(str(file))
    before = words(connections)
    with connections.writer() as old:
        pass

    make(tmp_path / "copy.db", 2).replace(file)

    assert (before, words(connections)) == (1, 2)
    with connections.writer() as new:
        assert new is not old


def test_a_missing_file_is_reported_and_found_when_it_is_back(file: Path, tmp_path: Path) -> None:
    """The step fails with a clear message, and works once the file is back."""
    connections = Connections(str(file))
    connections.reader()
    away = file.rename(tmp_path / "away.db")

    with pytest.raises(UsageError, match="there is no database at"):
        connections.reader()
    away.rename(file)

    assert words(connections) == 1


def test_connections_are_closed_with_their_workflow(file: Path) -> None:
    """A server that runs many workflows would otherwise run out of files."""
    connections = Connections(str(file))
    with connections.writer() as writer:
        writer.execute("UPDATE chapters SET words = 3 WHERE words = 1")
    words(connections)
    log = file.with_name("book.db-wal")
    open_before = log.exists()

    del connections, writer

    assert open_before
    assert not log.exists()


def test_writes_go_to_the_current_file(file: Path, tmp_path: Path) -> None:
    """Work on a file that was replaced during a long step would be lost."""
    connections = Connections(str(file))
    with connections.writer() as before:
        before.execute("UPDATE chapters SET words = 2 WHERE words = 1")

    for tail in ("-wal", "-shm"):
        file.with_name(file.name + tail).unlink(missing_ok=True)
    make(tmp_path / "other.db", 7).replace(file)
    with connections.writer() as writer:
        writer.execute("UPDATE chapters SET words = 8 WHERE words = 7")

    assert words(connections) == 8


# Steps that end at the same time share a commit, and each ends as it would alone.


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
