"""Connections from the pools that programs use: SQLAlchemy's and psycopg's own, for real."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool
from sqlalchemy import Engine as AlchemyEngine
from sqlalchemy import create_engine, text
from sqlalchemy.pool import QueuePool

from signoff.contracts import StepContext, define_workflow
from signoff.contracts.guarded_db.client import SafeDatabaseClient
from signoff.contracts.guarded_db.staging import Committed, Marker
from signoff.core.errors import NotAllowed, UsageError
from signoff.core.outcome import Status
from signoff.runtime.engine import Engine
from signoff.store.sqlite import MemoryStore
from tests.contract.library import Library, postgres_library, sqlite_library
from tests.patience import PATIENCE_SECONDS, wait_until

POOL_SIZE = 3


@dataclass(frozen=True)
class Pooled:
    """A library, and a program's pool of connections to it."""

    library: Library
    connect: Callable[[], Any]
    """What the program passes to signoff."""
    lent: Callable[[], int]
    """How many connections of the pool are in use."""
    titles: Callable[[], list[str]]
    """Reads the library through the program's own pool, as the program does."""


def _alchemy(library: Library, engine: AlchemyEngine, connect: Callable[[], Any]) -> Pooled:
    def titles() -> list[str]:
        with engine.connect() as connection:
            found = connection.execute(text("SELECT title FROM books ORDER BY id"))
            return [row.title for row in found]

    assert isinstance(engine.pool, QueuePool)
    return Pooled(library, connect, engine.pool.checkedout, titles)


def _engine_for(library: Library, **options: Any) -> AlchemyEngine:
    size = {"pool_size": POOL_SIZE, "max_overflow": 0, "pool_timeout": PATIENCE_SECONDS}
    if library.dialect == "sqlite":
        return create_engine(f"sqlite:///{library.address}", **size, **options)
    return create_engine(
        library.address.replace("postgresql://", "postgresql+psycopg://"), **size, **options
    )


ALCHEMY = ["raw_connection", "connect"]
PSYCOPG = ["getconn", "connection"]


@pytest.fixture(
    params=[
        *(f"sqlite {each}" for each in ALCHEMY),
        *(f"postgres {each}" for each in (*ALCHEMY, *PSYCOPG)),
    ]
)
def pooled(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pooled]:
    """Each kind of pool, with each way to take a connection."""
    dialect, way = request.param.split()
    if dialect == "sqlite":
        library = sqlite_library(tmp_path)
    else:
        library = postgres_library(request.getfixturevalue("postgres"), tmp_path)
    if way in PSYCOPG:
        settings = {"row_factory": dict_row, "autocommit": False}
        with ConnectionPool(
            library.address,
            kwargs=settings,
            min_size=1,
            max_size=POOL_SIZE,
            timeout=PATIENCE_SECONDS,
        ) as pool:
            yield _psycopg(library, pool, getattr(pool, way))
        return
    engine = _engine_for(library)
    try:
        yield _alchemy(library, engine, getattr(engine, way))
    finally:
        engine.dispose()


def _psycopg(library: Library, pool: "ConnectionPool[Any]", connect: Callable[[], Any]) -> Pooled:
    def titles() -> list[str]:
        with pool.connection() as connection:
            found = connection.execute("SELECT title FROM books ORDER BY id").fetchall()
            return [row["title"] for row in found]

    def lent() -> int:
        # The pool's own threads open connections and take them back, so both numbers lag.
        def count() -> int:
            stats = pool.get_stats()
            return stats["pool_size"] - stats["pool_available"]

        wait_until(lambda: count() == 0, "the return of every connection")
        return count()

    return Pooled(library, connect, lent, titles)


def add(db: SafeDatabaseClient, title: str) -> object:
    work = db.staged()
    work.stage("INSERT INTO books (title) VALUES (:title)", {"title": title})
    return work.apply([], marker=Marker("run", title, 1))


def test_a_client_gives_the_pool_its_connection_back(pooled: Pooled) -> None:
    """A program would run out of connections, and its own code must still be able to use them."""
    for number in range(2 * POOL_SIZE):
        with SafeDatabaseClient.open(pooled.connect) as db:
            done = add(db, f"Book {number}")
            rows = db.query("SELECT title FROM books WHERE title = 'Dune'")
            with pytest.raises(NotAllowed):
                db.execute("DROP TABLE books")
        assert done == Committed(1)
        assert rows == ({"title": "Dune"},)
        assert pooled.lent() == 0

    assert pooled.titles()[-1] == f"Book {2 * POOL_SIZE - 1}"


async def test_a_workflow_with_many_items_shares_a_small_pool(pooled: Pooled) -> None:
    """Items wait for a connection; none fails because the pool has only three."""

    def add_one(ctx: StepContext) -> dict[str, Any]:
        ctx.db.stage("INSERT INTO books (title) VALUES (:title)", {"title": f"Book {ctx.item}"})
        return {"before": len(ctx.db.query("SELECT title FROM books"))}

    workflow = define_workflow(
        {
            "type": "books",
            "database": {"connect": pooled.connect, "backup": False},
            "steps": [
                {"name": "list", "command": lambda _ctx: {"all": list(range(20))}, "next": "add"},
                {"name": "add", "command": add_one, "parallel": True, "parallelKey": "all"},
            ],
        }
    )

    async with Engine(MemoryStore()) as engine:
        result = await engine.start(workflow, name="run")

    assert result.status is Status.COMPLETED, result.reason
    assert pooled.lent() == 0
    assert len(pooled.titles()) == 22


class Lent:
    """A pool's object around a connection, which the program gets back."""

    def __init__(self, connection: Any) -> None:
        self.driver_connection = connection

    def close(self) -> None:
        pass


def test_a_sqlite_connection_is_used_and_given_back_as_it_was(tmp_path: Path) -> None:
    """A program's rows may be mappings, and its texts bytes; signoff must not mix them up."""
    library = sqlite_library(tmp_path)

    def as_mapping(_cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> Any:
        return {"row": row}

    with closing(sqlite3.connect(library.address)) as connection:
        connection.row_factory, connection.text_factory = as_mapping, bytes

        with SafeDatabaseClient.open(lambda: Lent(connection)) as db:
            rows = db.query("SELECT title FROM books WHERE id = 1")
        after = connection.execute("SELECT title FROM books WHERE id = 1").fetchall()
        foreign_keys = connection.execute("PRAGMA foreign_keys").fetchone()
        connection.execute("UPDATE books SET title = 'Dune II' WHERE id = 1")
        connection.rollback()

    assert rows == ({"title": "Dune"},)
    assert after == [{"row": (b"Dune",)}]
    assert foreign_keys == {"row": (0,)}
    assert library.titles() == ["Dune", "Emma"]


def test_what_a_program_left_open_is_not_committed(tmp_path: Path) -> None:
    """Signoff must not decide about the program's own changes."""
    library = sqlite_library(tmp_path)

    with closing(sqlite3.connect(library.address)) as connection:
        connection.execute("UPDATE books SET title = 'Dune II' WHERE id = 1")
        with SafeDatabaseClient.open(lambda: Lent(connection)) as db:
            add(db, "Ulysses")

    assert library.titles() == ["Dune", "Emma", "Ulysses"]


def test_a_client_cannot_use_a_connection_that_was_given_back(pooled: Pooled) -> None:
    """A function that was abandoned would otherwise disturb the next user of the connection."""
    with SafeDatabaseClient.open(pooled.connect) as db:
        view = db.read_only()
        db.query("SELECT title FROM books")

    with pytest.raises(UsageError, match="given back"):
        view.query("SELECT title FROM books")
    with pytest.raises(UsageError, match="given back"):
        add(db, "Ulysses")

    assert pooled.lent() == 0
    assert pooled.titles() == ["Dune", "Emma"]
