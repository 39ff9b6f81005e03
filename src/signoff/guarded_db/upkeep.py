"""Maintains the user's SQLite file: status, migrations, backups, restore.

Servers have better tools of their own for this, and their owners use them already.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from signoff.documents.regular_files import create_private, translate_write_errors
from signoff.errors import UsageError
from signoff.guarded_db import migrations as migrating
from signoff.guarded_db.backups import KEEP, Backup, Backups, Origin, Restored
from signoff.guarded_db.migrations import AppliedMigration, MigrationFile, read_migrations
from signoff.guarded_db.sources import read_address
from signoff.guarded_db.sqlite import SqliteConnection
from signoff.remedies import PassOption


@dataclass(frozen=True)
class DatabaseStatus:
    """The state of the database."""

    label: str
    """Its path, as shown to users."""
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
    ) -> None:
        """By default, the backups are in the folder `backups` next to the file."""
        path = read_address(address).path
        if path is None:
            raise UsageError(
                "signoff does not migrate or back up a PostgreSQL database; use your own tool for "
                "migrations, and pg_dump for backups"
            )
        self._path = path
        self._migrations = migrations
        self._patience = patience
        folder = backups or path.parent / "backups"
        self._backups = Backups(path, folder, now=now, keep=keep, patience=patience)

    def status(self) -> DatabaseStatus:
        """Returns the applied and the pending migrations, and the newest backup."""
        files = self._files()
        newest = next(iter(self.backups()), None)
        if not self._exists():
            return DatabaseStatus(str(self._path), False, (), files, newest)
        with closing(self._connect()) as db:
            state = migrating.state(db, None if self._migrations is None else files)
            return DatabaseStatus(db.label, True, state.applied, state.pending, newest)

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
            raise UsageError(f"there is no database at {self._path} to back up")
        return self._backups.take(reason, origin=origin)

    def backups(self) -> tuple[Backup, ...]:
        """Returns all backups, newest first."""
        return self._backups.list()

    def restore(self, id_: str) -> Restored:
        """Restores a backup, after checking it and backing up the current database."""
        return self._backups.restore(id_)

    def affected_runs(self, id_: str) -> tuple[str, ...]:
        """Returns the runs that have changed the database since a backup was taken."""
        return self._backups.affected_runs(id_)

    def _files(self) -> tuple[MigrationFile, ...]:
        return () if self._migrations is None else read_migrations(self._migrations)

    def _exists(self) -> bool:
        return self._path.is_file()

    def _create(self) -> None:
        with translate_write_errors(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # Another process may be creating it right now, which is fine.
            with suppress(FileExistsError):
                os.close(create_private(self._path))

    def _connect(self) -> SqliteConnection:
        return SqliteConnection(self._path, patience=self._patience)
