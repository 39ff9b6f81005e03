"""PostgreSQL as administrators set it up: a role for rows only, and a pooler."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from signoff.contracts.guarded_db.client import SafeDatabaseClient
from signoff.contracts.guarded_db.staging import Committed, Marker, Postcondition
from signoff.core.errors import NotAllowed, StoreBusy, StoreError
from signoff.core.remedies import SetUpDatabase
from signoff.surfaces.cli import main
from signoff.surfaces.notations.database import setup_sql
from tests.contract.library import Library, postgres_library
from tests.stubs.pgbouncer import program as pgbouncer_program
from tests.stubs.pgbouncer import running_pgbouncer
from tests.stubs.pooler import running_pooler
from tests.stubs.postgres import PostgresServer
from tests.unit.contracts.guarded_db.honest import HONEST

MARKER = Marker("run-1", "edit", 1)
ROLE = f"worker_{os.getpid()}"


@pytest.fixture
def library(postgres: PostgresServer, tmp_path: Path) -> Library:
    return postgres_library(postgres, tmp_path)


@pytest.fixture
def role(library: Library) -> str:
    """The address for a role without any rights."""
    with closing(library.connect()) as db:
        # All databases of a server share its roles, so it stays for the next test.
        if not db.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [ROLE]).fetchall():
            db.execute(f"CREATE ROLE {ROLE} LOGIN")
        db.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    return library.address.replace("postgres@", f"{ROLE}@")


@pytest.fixture(params=["stand-in", "PgBouncer", "PgBouncer that ignores options"])
def pooled_address(
    request: pytest.FixtureRequest, postgres: PostgresServer, library: Library
) -> Iterator[str]:
    """The address of the library behind a pooler in transaction mode."""
    if request.param != "stand-in" and pgbouncer_program() is None:
        pytest.skip("pgbouncer is not installed")
    more = "ignore_startup_parameters = options" if "ignores" in request.param else ""
    # The path of a socket must be short.
    with TemporaryDirectory() as name, ExitStack() as stack:
        folder, address = Path(name), library.address.replace(str(postgres.folder), name)
        if request.param != "stand-in":
            stack.enter_context(running_pgbouncer(postgres.folder, folder, more))
            yield address
            return
        pooler = stack.enter_context(running_pooler(postgres.folder, folder))
        yield address
        assert pooler.transactions > 1


# A role for rows only


def add_book(db: SafeDatabaseClient) -> object:
    work = db.staged()
    work.stage("INSERT INTO books (title) VALUES ('Ulysses')")
    work.stage("UPDATE books SET price = 1 WHERE title = 'Ulysses'")
    there = Postcondition(
        "it is there", lambda view: view.exists("SELECT 1 FROM books WHERE price = 1")
    )
    return work.apply([there], marker=MARKER)


def test_a_role_with_rights_on_rows_only_does_a_steps_work(library: Library, role: str) -> None:
    """No administrator lets an agent's role change the schema."""
    library.change(setup_sql(ROLE))

    with SafeDatabaseClient.open(role) as db:
        first, again = add_book(db), add_book(db)
        deleted = db.execute(
            "DELETE FROM books WHERE id = 2",
            confirm=db.get_confirmation("DELETE FROM books WHERE id = 2"),
        )

    assert (first, again) == (Committed(2), Committed(0, already=True))
    assert deleted.changed == 1
    assert library.titles() == ["Dune", "Ulysses"]
    assert library.rows("SELECT count(*) FROM signoff.signoff_steps") == [(1,)]
    assert library.rows("SELECT to_regclass('public.signoff_steps')") == [(None,)]


@pytest.mark.parametrize(
    ("revoked", "denied"),
    [
        ("INSERT ON books", "table books"),
        ("UPDATE ON books", "table books"),
        ("SELECT ON books", "table books"),
        ("USAGE ON SEQUENCE books_id_seq", "sequence books_id_seq"),
        ("INSERT ON signoff.signoff_steps", "table signoff_steps"),
        ("USAGE ON SCHEMA signoff", "schema signoff"),
    ],
)
def test_what_a_role_may_not_use_is_named(
    library: Library, role: str, revoked: str, denied: str
) -> None:
    """The administrator should not have to guess."""
    library.change(setup_sql(ROLE))
    library.change(f"REVOKE {revoked} FROM {ROLE}")

    with SafeDatabaseClient.open(role) as db:
        try:
            message = str(add_book(db))
        except StoreError as error:
            message = str(error)

    assert f"permission denied for {denied}" in message
    assert library.titles() == ["Dune", "Emma"]


def test_without_a_setup_the_table_is_created_where_that_is_permitted(
    library: Library, role: str
) -> None:
    """Small projects have one role for everything; others are told what is missing."""
    library.change(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {ROLE}")
    library.change(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {ROLE}")
    with SafeDatabaseClient.open(role) as db, pytest.raises(StoreError) as refused:
        add_book(db)
    library.change(f"GRANT CREATE ON SCHEMA public TO {ROLE}")
    with SafeDatabaseClient.open(role) as db:
        done = add_book(db)

    assert "permission denied for schema public" in str(refused.value)
    assert refused.value.remedies == (SetUpDatabase(),)
    assert done == Committed(2)


def test_the_command_prints_sql_that_the_owner_can_run(
    library: Library, role: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is run twice, because administrators do that."""
    code = main(["db", "setup", "--print", "--role", ROLE, "--table", "books"])
    sql = capsys.readouterr().out
    library.change(sql)
    library.change(sql)

    with SafeDatabaseClient.open(role) as db:
        done = add_book(db)
        with pytest.raises(StoreError, match="permission denied for table chapters"):
            db.query("SELECT n FROM chapters")

    assert code == 0
    assert done == Committed(2)


def test_names_in_the_sql_are_quoted() -> None:
    """A role may be called anything."""
    sql = setup_sql('a"; DROP TABLE books; --', tables=["Odd Name"])

    assert 'TO "a""; DROP TABLE books; --";' in sql
    assert 'ON "public"."Odd Name" TO' in sql


# Poolers


def test_everything_works_behind_a_pooler_in_transaction_mode(pooled_address: str) -> None:
    """Each transaction may get another session: nothing may be left in one."""
    refused = []

    with SafeDatabaseClient.open(pooled_address) as db:
        for _ in range(2):
            for sql in HONEST["postgres"]:
                try:
                    db.execute(sql)
                except (NotAllowed, StoreError) as error:
                    if "duplicate key" not in str(error):
                        refused.append(f"{sql}: {error}")
        done = add_book(db)
        confirmation = db.get_confirmation("DELETE FROM books WHERE id = 2")
        db.execute("DELETE FROM books WHERE id = 2", confirm=confirmation)

    assert refused == []
    assert isinstance(done, Committed)


def test_the_limits_hold_behind_a_pooler(library: Library, pooled_address: str) -> None:
    """They cannot be settings of the session there."""
    shown = "SELECT current_setting('statement_timeout') AS a, current_setting('lock_timeout') AS b"

    with SafeDatabaseClient.open(pooled_address, functions=["current_setting"], patience=0.3) as db:
        limits = db.query(shown)
        with closing(library.connect()) as other:
            other.execute("BEGIN")
            other.execute("UPDATE books SET price = 1 WHERE id = 1")
            with pytest.raises(StoreBusy, match="locked"):
                db.execute("UPDATE books SET price = 2 WHERE id = 1")
            other.execute("ROLLBACK")
        db._db.begin(write=False)
        with pytest.raises(StoreError, match="read-only"):
            db._db.own("DELETE FROM books")
        db._db.rollback()

    assert limits == ({"a": "30s", "b": "300ms"},)
    assert library.titles() == ["Dune", "Emma"]


def test_the_limits_are_set_on_a_direct_connection(library: Library) -> None:
    """A statement must not hold the server, or wait for a lock, for ever."""
    shown = "SELECT current_setting('statement_timeout') AS a, current_setting('lock_timeout') AS b"

    with library.open(functions=["current_setting"]) as db:
        limits = db.query(shown)

    assert limits == ({"a": "30s", "b": "5s"},)
