import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from signoff.contracts.guarded_db.sqlite import SqliteConnection
from signoff.contracts.guarded_db.verdict import Allowed, StatementKind
from signoff.core.errors import NotAllowed, SignoffError
from tests.unit.contracts.guarded_db.attacks import ATTACKS
from tests.unit.contracts.guarded_db.honest import SCHEMA


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "library.db")) as db:
        db.executescript(SCHEMA["sqlite"])
    return tmp_path / "library.db"


@pytest.fixture
def connection(path: Path) -> Iterator[SqliteConnection]:
    with closing(SqliteConnection(path, statement_seconds=0.2)) as db:
        yield db


def content(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as db:
        return list(db.iterdump())


def test_no_attack_changes_anything_even_if_the_guard_takes_it_for_a_read(
    path: Path, connection: SqliteConnection
) -> None:
    """A single mistake of the parser must not be enough."""
    before = content(path)
    files_before = sorted(path.parent.iterdir())

    for sql in ATTACKS["sqlite"]:
        connection.begin(write=True)
        with suppress(SignoffError, ValueError):
            connection.run(sql, (), Allowed(StatementKind.READ))
        connection.commit()

    assert content(path) == before
    assert sorted(path.parent.iterdir()) == files_before


@pytest.mark.parametrize(
    ("sql", "allowed"),
    [
        ("DELETE FROM books", Allowed(StatementKind.INSERT, "books")),
        ("DELETE FROM books", Allowed(StatementKind.UPDATE, "books")),
        ("DELETE FROM chapters", Allowed(StatementKind.DELETE, "changes")),
        ("UPDATE changes SET what = 'x'", Allowed(StatementKind.UPDATE, "books")),
        ("INSERT INTO chapters (n) VALUES (1)", Allowed(StatementKind.INSERT, "books")),
        ("INSERT INTO signoff_steps VALUES (1)", Allowed(StatementKind.INSERT, "signoff_steps")),
        ("DROP TABLE books", Allowed(StatementKind.DELETE, "books")),
        ("PRAGMA user_version = 5", Allowed(StatementKind.UPDATE, "books")),
        ("ATTACH ':memory:' AS x", Allowed(StatementKind.UPDATE, "books")),
        ("COMMIT", Allowed(StatementKind.UPDATE, "books")),
        ("SELECT load_extension('x')", Allowed(StatementKind.UPDATE, "books")),
    ],
)
def test_a_statement_can_only_do_what_its_kind_and_table_allow(
    connection: SqliteConnection, sql: str, allowed: Allowed
) -> None:
    """A statement that was checked as one thing could do another."""
    connection.own("CREATE TABLE signoff_steps (a)")
    connection.begin(write=True)

    with pytest.raises(NotAllowed, match="refused"):
        connection.run(sql, (), allowed)


def test_a_sealed_transaction_can_be_read_and_committed_but_not_written(
    path: Path, connection: SqliteConnection
) -> None:
    """Conditions must not change what they check."""
    insert = "INSERT INTO changes VALUES ('x')"
    connection.begin(write=True)
    connection.run(insert, (), Allowed(StatementKind.INSERT, "changes"))
    connection.seal()

    rows = connection.run("SELECT what FROM changes", (), Allowed(StatementKind.READ)).rows
    with pytest.raises(NotAllowed):
        connection.run(insert, (), Allowed(StatementKind.INSERT, "changes"))
    connection.commit()

    assert rows == ({"what": "x"},)
    assert "INSERT INTO \"changes\" VALUES('x');" in content(path)


@pytest.mark.parametrize("write", [True, False])
def test_a_change_that_slips_through_a_read_only_transaction_is_rolled_back(
    path: Path, connection: SqliteConnection, write: bool
) -> None:
    """A single mistake of the authorizer must not be enough either."""
    before = content(path)
    connection.begin(write=write)
    connection.seal()
    # A statement of signoff's own is not checked, like one that all checks have missed.
    connection.own("INSERT INTO changes VALUES ('x')")

    with pytest.raises(NotAllowed, match="rolled back"):
        connection.commit()

    assert content(path) == before


def test_a_schema_that_another_program_changed_is_noticed(
    path: Path, connection: SqliteConnection
) -> None:
    """A search index that is created while a run waits must be writable."""
    with closing(sqlite3.connect(path)) as other:
        other.executescript("CREATE VIRTUAL TABLE notes USING fts5 (body)")

    connection.begin(write=True)
    ran = connection.run(
        "INSERT INTO notes VALUES ('n')", (), Allowed(StatementKind.INSERT, "notes")
    )
    connection.commit()

    assert ran.changed == 1
