"""Maintains the user's database: status, migrations, backups, restore."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from signoff.documents.regular_files import create_private, translate_write_errors
from signoff.errors import ConfigError, UsageError
from signoff.guarded_db import migrations as migrating
from signoff.guarded_db.address import Address, read_address
from signoff.guarded_db.backups import KEEP, Backup, Backups, Copies, Origin, Restored
from signoff.guarded_db.migration_files import MigrationFile, read_migrations
from signoff.guarded_db.migrations import AppliedMigration
from signoff.guarded_db.ports import Connection
from signoff.guarded_db.sources import connect
from signoff.guarded_db.verdict import Dialect
from signoff.remedies import PassOption


@dataclass(frozen=True)
class DatabaseStatus:
    """The state of the database."""

    label: str
    """Its path or server, as shown to users."""
    dialect: Dialect
    exists: bool
    applied: tuple[AppliedMigration, ...]
    pending: tuple[MigrationFile, ...]
    newest_backup: Backup | None


@dataclass(frozen=True)
class Migrated:
    """What `migrate` did, or with `dry_run` would do."""

    applied: tuple[MigrationFile, ...]
    backup: Backup | None
    """Taken before anything was changed; None if nothing was, or the database is new."""
    dry_run: bool = False


class Upkeep:
    """Maintains one database."""

    def __init__(
        self,
        address: str | Path,
        *,
        migrations: Path | None = None,
        backups: Path | None = None,
        now: Callable[[], float] = time.time,
        keep: int = KEEP,
        patience: float = 5.0,
        tables: Sequence[str] = (),
    ) -> None:
        """By default, the backups of a SQLite file are in the folder `backups` next to it.

        `tables` are those that backups of a PostgreSQL database contain; empty means all.
        """
        self._tables = tuple(tables)
        self._address = read_address(address)
        self._migrations = migrations
        self._folder = backups or _default_folder(self._address)
        self._now = now
        self._keep = keep
        self._patience = patience

    def status(self) -> DatabaseStatus:
        """Returns the applied and the pending migrations, and the newest backup."""
        files = self._files()
        newest = next(iter(self.backups()), None)
        if not self._exists():
            label = str(self._address.path)
            return DatabaseStatus(label, self._address.dialect, False, (), files, newest)
        with closing(self._connect()) as db:
            state = migrating.state(db, None if self._migrations is None else files)
            return DatabaseStatus(db.label, db.dialect, True, state.applied, state.pending, newest)

    def migrate(self, *, dry_run: bool = False) -> Migrated:
        """Applies the migrations that are pending, after a backup.

        A dry run applies them too, and rolls them back: what would fail, fails.
        """
        if self._migrations is None:
            raise UsageError(
                "no folder of migrations is set; pass one, or set data.migrations",
                remedy=PassOption("migrations", "DIR"),
            )
        files = self._files()
        fresh = not self._exists()
        if fresh and dry_run:
            return Migrated(files, None, dry_run=True)
        if fresh:
            self._create()
        with closing(self._connect()) as db:
            pending = migrating.state(db, files).pending
            if dry_run:
                migrating.rehearse(db, pending)
                return Migrated(pending, None, dry_run=True)
            backup = None
            if pending and not fresh:
                backup = self.backup("before a migration", origin=Origin.MIGRATION)
            return Migrated(migrating.migrate(db, pending), backup)

    def backup(self, reason: str = "by hand", *, origin: Origin = Origin.HAND) -> Backup:
        """Takes a backup and removes the oldest of the same origin; one by hand stays."""
        if not self._exists():
            raise UsageError(f"there is no database at {self._address.path} to back up")
        return self._backups().take(reason, origin=origin)

    def backups(self) -> tuple[Backup, ...]:
        """Returns all backups, newest first."""
        return self._backups().list()

    def restore(self, id_: str) -> Restored:
        """Restores a backup, after checking it and backing up the current database."""
        return self._backups().restore(id_)

    def affected_runs(self, id_: str) -> tuple[str, ...]:
        """Returns the runs that have changed the database since a backup was taken."""
        return self._backups().affected_runs(id_)

    def _files(self) -> tuple[MigrationFile, ...]:
        if self._migrations is None:
            return ()
        return read_migrations(self._migrations, self._address.dialect)

    def _exists(self) -> bool:
        return self._address.path is None or self._address.path.is_file()

    def _create(self) -> None:
        path = self._address.path
        if path is None:
            return
        with translate_write_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            # Another process may be creating it right now, which is fine.
            with suppress(FileExistsError):
                os.close(create_private(path))

    def _connect(self) -> Connection:
        return connect(self._address, patience=self._patience)

    def _backups(self) -> Backups:
        if self._folder is None:
            raise ConfigError("set a folder for the backups of a PostgreSQL database")
        return Backups(self._copies(), self._folder, now=self._now, keep=self._keep)

    def _copies(self) -> Copies:
        if self._address.path is not None:
            if self._tables:
                raise ConfigError("a SQLite file is backed up as a whole; name no tables")
            from signoff.guarded_db.sqlite_copies import SqliteCopies

            return SqliteCopies(self._address.path, patience=self._patience)
        from signoff.guarded_db.postgres_copies import PostgresCopies

        return PostgresCopies(self._address.url, patience=self._patience, tables=self._tables)


def _default_folder(address: Address) -> Path | None:
    return None if address.path is None else address.path.parent / "backups"
