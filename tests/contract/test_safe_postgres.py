"""What is different with a database server: its own parser, and lost connections."""

from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from signoff.contracts.guarded_db.client import SafeDatabaseClient
from signoff.contracts.guarded_db.postgres import PostgresConnection, numbered
from signoff.contracts.guarded_db.staging import (
    Committed,
    Marker,
    Postcondition,
    RolledBack,
    Tables,
)
from signoff.contracts.guarded_db.verdict import Allowed, StatementKind
from signoff.core.errors import ConfigError, NotAllowed, SignoffError, StoreError, WriteFailed
from tests.contract.library import Library, postgres_library
from tests.stubs.postgres import PostgresServer
from tests.unit.contracts.guarded_db.attacks import SHARED, lines

MARKER = Marker("run-1", "edit", 1)
BEFORE = ["Dune", "Emma"]


@pytest.fixture
def library(postgres: PostgresServer, tmp_path: Path) -> Library:
    return postgres_library(postgres, tmp_path)


@pytest.fixture
def connection(library: Library) -> Iterator[PostgresConnection]:
    with closing(PostgresConnection(library.address, statement_seconds=2)) as db:
        yield db


def test_nothing_is_changed_even_if_the_guard_takes_it_for_a_read(
    connection: PostgresConnection, library: Library
) -> None:
    """A single mistake of the parser must not be enough."""
    kinds = ("schema", "every row", "several statements", "comments", "hidden changes")
    before = library.rows("SELECT count(*) FROM pg_class")

    for sql in [sql for kind in kinds for sql in lines(SHARED[kind])]:
        connection.begin(write=False)
        with suppress(SignoffError):
            connection.run(sql, (), Allowed(StatementKind.READ))
        connection.rollback()

    assert library.titles() == BEFORE
    assert len(library.rows("SELECT 1 FROM chapters")) == 3
    assert library.rows("SELECT count(*) FROM pg_class") == before


@pytest.mark.parametrize(
    ("sql", "allowed"),
    [
        ("DELETE FROM books", Allowed(StatementKind.UPDATE, "books")),
        ("UPDATE chapters SET n = 0", Allowed(StatementKind.UPDATE, "books")),
        ("INSERT INTO chapters (n) VALUES (1)", Allowed(StatementKind.INSERT, "books")),
        (
            "WITH x AS (DELETE FROM chapters RETURNING 1) UPDATE books SET title = 'x'",
            Allowed(StatementKind.UPDATE, "books"),
        ),
        (
            "WITH x AS (DELETE FROM books RETURNING 1) UPDATE books SET title = 'x'",
            Allowed(StatementKind.UPDATE, "books"),
        ),
        ("SELECT 1", Allowed(StatementKind.UPDATE, "books")),
        ("UPDATE quiet SET title = 'x'", Allowed(StatementKind.UPDATE, "quiet")),
    ],
)
def test_the_servers_plan_must_match_the_allowed_change(
    connection: PostgresConnection, library: Library, sql: str, allowed: Allowed
) -> None:
    """A text, a rule or a view can make a statement do something else."""
    library.change("CREATE VIEW quiet AS SELECT * FROM books")
    library.change("CREATE RULE loud AS ON UPDATE TO quiet DO INSTEAD DELETE FROM books")
    connection.begin(write=True)

    with pytest.raises(NotAllowed, match="the server would do something else"):
        connection.run(sql, (), allowed)

    connection.rollback()
    assert library.titles() == BEFORE


RENAMED = """
CREATE SCHEMA other;
CREATE FUNCTION other.f(books) RETURNS text LANGUAGE sql RETURN $1.title;
ALTER FUNCTION other.f RENAME TO lower;
ALTER FUNCTION other.lower SET SCHEMA public
"""


@pytest.mark.parametrize(
    "ddl",
    [
        "CREATE RULE loud AS ON UPDATE TO books DO INSTEAD DELETE FROM chapters",
        "ALTER TABLE books RENAME TO old; CREATE VIEW books AS SELECT * FROM old",
        "CREATE FUNCTION lower(books) RETURNS text LANGUAGE sql RETURN $1.title",
        RENAMED,
    ],
    ids=["a rule", "a view", "a function", "a renamed function"],
)
def test_a_known_statement_is_judged_again_when_the_schema_has_changed(
    library: Library, ddl: str
) -> None:
    """A judgment that outlives its schema would let a statement do something else."""
    sql = "UPDATE books SET title = lower(title) WHERE id = 1"
    with library.open() as db:
        for _ in range(3):
            db.execute(sql)
        library.change(ddl)

        with pytest.raises(NotAllowed, match=r"something else|calls the function"):
            db.execute(sql)

    assert len(library.rows("SELECT 1 FROM chapters")) == 3


@pytest.mark.parametrize(
    ("sql", "allowed"),
    [
        ("COMMIT; DELETE FROM books", Allowed(StatementKind.READ)),
        (
            "UPDATE books SET title = 'x' WHERE id = 1; DELETE FROM books",
            Allowed(StatementKind.UPDATE, "books"),
        ),
    ],
)
def test_several_statements_in_one_text_are_refused_by_the_server_too(
    connection: PostgresConnection, library: Library, sql: str, allowed: Allowed
) -> None:
    """The simple protocol would run them all."""
    connection.begin(write=allowed.kind is not StatementKind.READ)

    with pytest.raises(StoreError, match="multiple commands"):
        connection.run(sql, (), allowed)

    connection.rollback()
    assert library.titles() == BEFORE


def test_a_connection_that_breaks_in_a_transaction_leaves_nothing_behind(library: Library) -> None:
    """The run is resumed later, and does the work once."""

    def broken(view: Tables) -> bool:
        pid = view.value("SELECT pg_backend_pid()")
        library.rows(f"SELECT pg_terminate_backend({pid})")
        return view.exists("SELECT 1 FROM books")

    insert = "INSERT INTO books (title) VALUES ('Ulysses')"
    with library.open(functions=["pg_backend_pid"]) as db:
        work = db.staged()
        work.stage(insert)
        undone = work.apply([Postcondition("breaks", broken)], marker=MARKER)
    seen = library.titles()
    with library.open() as db:
        again = db.staged()
        again.stage(insert)
        done = again.apply([], marker=MARKER)

    assert isinstance(undone, RolledBack)
    assert "cannot be used" in str(undone)
    assert seen == BEFORE
    assert done == Committed(changed=1)


def test_a_missing_server_is_reported_without_the_password(tmp_path: Path) -> None:
    """Messages end up in logs."""
    address = f"postgresql://ann:secret@/books?host={tmp_path}"

    with pytest.raises(WriteFailed, match=r"database books on .* cannot be used") as refused:
        SafeDatabaseClient.open(address, patience=1)

    assert "secret" not in str(refused.value)


def test_an_invalid_address_is_not_shown() -> None:
    """It may contain a password."""
    with pytest.raises(ConfigError, match="cannot be read") as refused:
        SafeDatabaseClient.open("postgresql://ann:secret@[host/x")

    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("sql", "params", "numbers", "values"),
    [
        ("a = :x AND b = :y AND c = :x", {"x": 1, "y": 2}, "a = $1 AND b = $2 AND c = $1", [1, 2]),
        ("a::text = :x", {"x": 1, "unused": 2}, "a::text = $1", [1]),
        ("':x' = :x", {"x": 1}, "':x' = $1", [1]),
        ("a = $1", [5], "a = $1", [5]),
    ],
)
def test_named_parameters_become_numbered_ones(
    sql: str, params: dict[str, object], numbers: str, values: list[object]
) -> None:
    """The same statement should run on both kinds of database."""
    assert numbered(sql, params) == (numbers, values)


def test_a_parameter_without_a_value_is_reported() -> None:
    """The server's own message would be about a colon."""
    with pytest.raises(StoreError, match=":missing"):
        numbered("a = :missing", {"x": 1})
