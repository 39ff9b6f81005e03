"""Statements on PostgreSQL that run again and again, and results that are too large."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from signoff.contracts.guarded_db.staging import (
    Committed,
    Marker,
    Postcondition,
    RolledBack,
    Tables,
)
from signoff.core.errors import StoreError
from tests.contract.library import Library, postgres_library
from tests.stubs.postgres import PostgresServer

READ = "SELECT * FROM books WHERE id = $1"
CHANGE = "UPDATE books SET title = $1 WHERE id = 1 RETURNING *"


@pytest.fixture
def library(postgres: PostgresServer, tmp_path: Path) -> Library:
    return postgres_library(postgres, tmp_path)


def test_a_condition_sees_columns_that_were_added_after_its_last_use(library: Library) -> None:
    """The server refuses its plan, and the transaction fails: that must not cost an attempt."""
    seen: list[int] = []

    def look(view: Tables) -> bool:
        (row,) = view.query(READ, [1])
        seen.append(len(row))
        return True

    with library.open() as db:
        for number in range(4):
            if number == 3:
                library.change("ALTER TABLE books ADD COLUMN pages integer DEFAULT 412")
            work = db.staged()
            work.stage("UPDATE books SET title = 'Emma' WHERE id = 2")
            marker = Marker("run", "edit", number)
            assert work.apply([Postcondition("look", look)], marker=marker) == Committed(1)

    assert [count - seen[0] for count in seen] == [0, 0, 0, 1]


def test_a_step_notices_that_a_column_is_gone(library: Library) -> None:
    """The server's entry for the table is the same as before, and two plans are out of date."""
    library.change("ALTER TABLE books ADD COLUMN pages integer DEFAULT 412")
    there = Postcondition("there", lambda view: view.exists(READ, [1]))
    with library.open() as db:
        for number in range(4):
            if number == 3:
                library.change("ALTER TABLE books DROP COLUMN pages")
            work = db.staged()
            work.stage(CHANGE, ["Dune"])
            assert work.apply([there], marker=Marker("run", "edit", number)) == Committed(1)


def test_work_is_not_reported_as_committed_if_a_condition_broke_the_transaction(
    library: Library,
) -> None:
    """The server answers COMMIT with a rollback then, which is no error."""

    def careless(view: Tables) -> bool:
        with suppress(StoreError):
            view.query("SELECT 1 / (id - id) AS never FROM books")
        return True

    with library.open() as db:
        work = db.staged()
        work.stage("UPDATE books SET title = 'Ulysses' WHERE id = 1")
        marker = Marker("run", "edit", 1)
        applied = work.apply([Postcondition("careless", careless)], marker=marker)
        is_done = db.done(marker)

    assert isinstance(applied, RolledBack)
    assert "a statement of the transaction has failed" in str(applied)
    assert not is_done
    assert library.titles() == ["Dune", "Emma"]


def test_a_result_that_is_too_large_for_a_condition_fails_the_step_only(library: Library) -> None:
    """The condition's first query travels together with the command that ends all writing."""
    large = "SELECT repeat('x', 10000) AS text FROM generate_series(1, $1::int)"
    with library.open(functions=["generate_series"]) as db:
        # Known from now on, so nothing about it has to be looked up first.
        db.query(large, [2])
        work = db.staged()
        work.stage("UPDATE books SET title = 'Ulysses' WHERE id = 1")
        condition = Postcondition("large", lambda view: view.exists(large, [20_000]))
        applied = work.apply([condition], marker=Marker("run", "edit", 1))
        again = work.apply([], marker=Marker("run", "edit", 2))

    assert "larger than 64 MB" in str(applied)
    assert again == Committed(1)


@pytest.mark.parametrize(
    "note", ["it's", "\\", "'); DROP TABLE books; --", "$1 %s ß 🂡", '{"a": "\\u0000"}']
)
def test_texts_of_a_step_are_stored_as_they_are(library: Library, note: str) -> None:
    """A known marker is inserted with its values in the statement."""
    with library.open() as db:
        markers = [Marker(f"run {note}", note, number, note) for number in range(4)]
        for marker in markers:
            db.staged().apply([], marker=marker, note=note)

        assert db.notes(markers) == [note] * 4
