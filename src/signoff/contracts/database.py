"""The way to the user's database, which steps read and stage changes for.

This is the only module of contracts that knows `guarded_db`. It loads that package when a workflow
names a database, so that others start without the parser and the drivers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from signoff.contracts.model import Database

if TYPE_CHECKING:
    from signoff.contracts.guarded_db.client import Connections, StepSession
    from signoff.contracts.guarded_db.staging import Tables

__all__ = ["Connections", "StepKey", "StepSession", "Tables"]
"""What the other modules name in their signatures; the types are not loaded for that."""

StepKey = tuple[str, str, int, str]
"""The run, step, visit and item whose work was committed."""

Proof = tuple[str, Callable[["Tables"], bool], str, bool]
"""A postcondition: its name, the check inside the transaction, the message if it fails, and whether
it is quick, so that other steps can share the transaction."""


def open_database(database: Database) -> Connections:
    """Returns the database that a definition names; connects when it is first used."""
    from signoff.contracts.guarded_db.client import Connections

    return Connections(database.url)


def back_up(database: Database, reason: str, *, reuse: bool) -> str:
    """Returns the id of a new backup; `reuse` takes an existing one with the same reason."""
    from signoff.contracts.guarded_db.upkeep import Origin, Upkeep

    folder = Path(database.backups) if database.backups else None
    upkeep = Upkeep(database.url, backups=folder, keep=database.keep)
    existing = upkeep.backups() if reuse else ()
    found = next((backup.id for backup in existing if backup.reason == reason), None)
    return found or upkeep.backup(reason, origin=Origin.RUN).id


def check_address(url: str) -> Path | None:
    """Returns the path of a SQLite file, None for a server; raises `ConfigError` for others."""
    from signoff.contracts.guarded_db.ports import read_address

    return read_address(url).path


def query_problem(sql: str, database: Database) -> str:
    """Returns why a condition may not use a query; empty if it may."""
    from signoff.contracts.guarded_db.guard import Guard
    from signoff.contracts.guarded_db.ports import read_address
    from signoff.contracts.guarded_db.verdict import Refused, StatementKind

    verdict = Guard(read_address(database.url).dialect).verdict(sql)
    if isinstance(verdict, Refused):
        return str(verdict)
    return "" if verdict.kind is StatementKind.READ else "a condition can only read"


def is_backed_up(database: Database) -> bool:
    """Whether a backup is taken before a run first changes a database; a server has its own."""
    return database.backup is not False and check_address(database.url) is not None


def with_absolute_paths(database: Database, folder: Path) -> Database:
    """Returns the database with absolute paths; the address of a server has none."""
    path = check_address(database.url)
    url = database.url if path is None else str(folder / path.expanduser())
    backups = str(folder / database.backups) if database.backups else None
    return replace(database, url=url, backups=backups)
