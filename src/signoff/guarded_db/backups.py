"""Backups of the user's database: take, list, remove the oldest, check and restore.

Each backup is a file with a record next to it. The record has the id of the database and the
digest of the file; a file without a record, or that does not match its record, is not restored.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from signoff.documents.regular_files import (
    create_private,
    make_private_folders,
    translate_write_errors,
)
from signoff.errors import StoreDamaged, StoreError, UnknownName
from signoff.remedies import ListBackups

KEEP = 10
"""How many backups of each origin are kept by default; the oldest are removed first."""

_RECORD = ".json"


class Origin(StrEnum):
    """Who took a backup. Those of one origin never push out those of another."""

    HAND = "hand"
    """Taken by a human; never removed."""
    RUN = "run"
    MIGRATION = "migration"
    RESTORE = "restore"


@dataclass(frozen=True)
class Backup:
    """One backup, as its record describes it."""

    id: str
    created_at: str
    """The time in UTC, as ISO 8601."""
    path: str
    size_bytes: int
    sha256: str
    database: str
    """The id of its database; see `identity`."""
    place: str
    """The path or server of that database, as shown to users; a key of stored records."""
    reason: str
    """Why it was taken: by hand, or before a run, a migration or a restore."""
    origin: str
    tables: Sequence[str] = ()
    """The tables it contains; empty for the whole database."""


@dataclass(frozen=True)
class Restored:
    """What a restore did."""

    backup: Backup
    saved: Backup | None
    """A backup of the previous content; None if there was nothing readable."""
    runs: tuple[str, ...] = ()
    """The runs whose work was undone."""


class Copies(Protocol):
    """How one kind of database is copied to a file and back."""

    label: str
    """The path or server of the database, as shown to users."""
    suffix: str
    """The suffix of its backup files."""

    def database_id(self) -> str | None:
        """Returns the id of the database; None if there is nothing to read."""

    tables: Sequence[str]
    """The tables that are copied; empty for the whole database."""

    def copy_out(self, target: Path) -> str:
        """Writes a consistent copy into a new file; returns the id of the database."""

    def verify(self, source: Path, database: str, tables: Sequence[str]) -> None:
        """Raises if a file is not an intact copy of the database with that id."""

    def copy_in(self, source: Path, tables: Sequence[str], since: str) -> None:
        """Replaces the content of the database with that of the file, completely or not at all.

        If it contains some tables only, the records of steps that were done `since` are removed:
        their work may be gone.
        """

    def runs_since(self, moment: str) -> tuple[str, ...]:
        """Returns the runs that have changed the database since a time, in ISO 8601."""


class Backups:
    """The backups of one database, in one folder."""

    def __init__(
        self, copies: Copies, folder: Path, *, now: Callable[[], float], keep: int = KEEP
    ) -> None:
        self._copies = copies
        self._folder = folder
        self._now = now
        self._keep = keep

    def take(
        self, reason: str = "by hand", *, origin: Origin = Origin.HAND, spare: str = ""
    ) -> Backup:
        """Takes a backup and removes the oldest of its origin, but never the one called `spare`."""
        with translate_write_errors(self._folder):
            backup = self._take(reason, origin)
            if origin is not Origin.HAND:
                self._remove_oldest(origin, spare)
        return backup

    def list(self) -> tuple[Backup, ...]:
        """Returns all backups, newest first."""
        newest_first = sorted(self._records(), key=lambda b: (b.created_at, b.id), reverse=True)
        return tuple(newest_first)

    def restore(self, id_: str) -> Restored:
        """Restores a backup, after checking it and backing up the current database.

        A backup that is damaged, was changed, or belongs to another database is refused, and the
        database stays as it is.
        """
        backup = self._find(id_)
        self._verify(backup)
        saved: Backup | None = None
        runs: tuple[str, ...] = ()
        if self._copies.database_id() is not None:
            runs = self._copies.runs_since(backup.created_at)
            saved = self.take(f"before restoring {id_}", origin=Origin.RESTORE, spare=id_)
        self._copies.copy_in(Path(backup.path), backup.tables, backup.created_at)
        return Restored(backup, saved, runs)

    def affected_runs(self, id_: str) -> tuple[str, ...]:
        """Returns the runs whose work a restore would undo."""
        backup = self._find(id_)
        if self._copies.database_id() is None:
            return ()
        return self._copies.runs_since(backup.created_at)

    def _take(self, reason: str, origin: Origin) -> Backup:
        make_private_folders(self._folder)
        now = datetime.fromtimestamp(self._now(), UTC)
        id_ = f"{now:%Y%m%d-%H%M%S-%f}-{secrets.token_hex(2)}"
        target = self._folder / f"{id_}{self._copies.suffix}"
        with _new_file(target) as unfinished:
            database = self._copies.copy_out(unfinished)
        backup = Backup(
            id=id_,
            created_at=now.isoformat(timespec="microseconds"),
            path=str(target),
            size_bytes=target.stat().st_size,
            sha256=_digest(target),
            database=database,
            place=self._copies.label,
            reason=reason,
            origin=origin.value,
            tables=tuple(self._copies.tables),
        )
        with _new_file(self._folder / f"{id_}{_RECORD}") as unfinished:
            unfinished.write_text(json.dumps(asdict(backup), indent=1) + "\n", "utf-8")
        return backup

    def _remove_oldest(self, origin: Origin, spare: str) -> None:
        # Several databases may share a folder, and each keeps its own number of backups.
        database = self._copies.database_id()
        ours = [
            backup
            for backup in self.list()
            if backup.database == database and backup.origin == origin
        ]
        for backup in ours[self._keep :]:
            if backup.id != spare:
                Path(backup.path).unlink(missing_ok=True)
                (self._folder / f"{backup.id}{_RECORD}").unlink(missing_ok=True)

    def _records(self) -> Iterator[Backup]:
        for record in self._folder.glob(f"[!.]*{_RECORD}"):
            # Another process may be removing backups; an unreadable record is no backup.
            with suppress(OSError, ValueError, TypeError):
                yield _read_record(record)

    def _find(self, id_: str) -> Backup:
        known = {backup.id: backup for backup in self.list()}
        if id_ not in known:
            raise UnknownName("backup", id_, known)
        return known[id_]

    def _verify(self, backup: Backup) -> None:
        path = Path(backup.path)
        current = self._copies.database_id()
        if current is not None and backup.database != current:
            raise StoreError(
                f"backup {backup.id} belongs to another database ({backup.place}) than the one "
                "that is there now; to restore it, move the current one away first"
            )
        if current is None and backup.place != self._copies.label:
            raise StoreError(
                f"backup {backup.id} belongs to {backup.place}; it is not restored to "
                f"{self._copies.label}, which has no content to compare it with"
            )
        if not path.is_file() or _digest(path) != backup.sha256:
            raise StoreDamaged(
                f"backup {backup.id} is damaged or was changed; choose another one",
                remedy=ListBackups(),
            )
        self._copies.verify(path, backup.database, backup.tables)


def _read_record(record: Path) -> Backup:
    data = json.loads(record.read_text(encoding="utf-8"))
    known = {field.name for field in fields(Backup)}
    backup = Backup(**{key: value for key, value in data.items() if key in known})
    # The folder may have been moved, and a path in a record must not lead anywhere else.
    path = record.with_name(Path(backup.path).name)
    if backup.id != record.name.removesuffix(_RECORD) or not path.is_file():
        raise ValueError(record.name)
    return replace(backup, path=str(path), tables=tuple(backup.tables))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _new_file(path: Path) -> Iterator[Path]:
    """Yields a private file to write to; it gets its name when it is complete and on disk."""
    unfinished = path.with_name(f".{path.name}.part")
    try:
        os.close(create_private(unfinished))
        yield unfinished
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
