"""A small library in SQLite or PostgreSQL, and functions that bypass the guard."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signoff.contracts.guarded_db.client import SafeDatabaseClient
from signoff.contracts.guarded_db.verdict import Dialect
from tests.stubs.postgres import PostgresServer
from tests.unit.contracts.guarded_db.honest import SCHEMA


@dataclass(frozen=True)
class Library:
    """The address of the database, and how tests read and change it directly."""

    dialect: Dialect
    address: str
    folder: Path
    connect: Callable[[], Any]

    def open(self, **options: Any) -> SafeDatabaseClient:
        return SafeDatabaseClient.open(self.address, **options)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(self.connect()) as db:
            found: list[tuple[Any, ...]] = db.execute(sql).fetchall()
            return found

    def change(self, sql: str) -> None:
        """Runs statements of the owner, such as those of a migration."""
        with closing(self.connect()) as db:
            db.execute(sql)

    def titles(self) -> list[str]:
        return [title for (title,) in self.rows("SELECT title FROM books ORDER BY id")]

    def place(self, number: int) -> str:
        """Returns the placeholder of the n-th value."""
        return "?" if self.dialect == "sqlite" else f"${number}"


def sqlite_library(folder: Path) -> Library:
    path = folder / "library.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(SCHEMA["sqlite"])

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(path, isolation_level=None)

    return Library("sqlite", str(path), folder, connect)


def postgres_library(server: PostgresServer, folder: Path) -> Library:
    import psycopg

    url = server.new_database()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(SCHEMA["postgres"])

    def connect() -> psycopg.Connection[Any]:
        return psycopg.connect(url, autocommit=True)

    return Library("postgres", url, folder, connect)
