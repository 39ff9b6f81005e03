"""Backups of the user's database: taken, listed, thinned out, and restored when they are sound.

Each backup is a file and a record beside it. The record says which database it is of and what
the file's digest was; a file without a record, or that does not match it, is not restored.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from signoff.documents.regular_files import create_private, make_private_folders
from signoff.errors import StoreDamaged, StoreError, UnknownName, WriteFailed
from signoff.remedies import ListBackups

KEEP = 10
"""How many backups stay; the oldest go first."""

_RECORD = ".json"
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Backup:
    """One backup, as its record describes it."""

    id: str
    created_at: str
    """When, in UTC, as ISO 8601 writes it."""
    path: str
    size_bytes: int
    sha256: str
    database: str
    """The name of the database it is of; see `identity`."""
    place: str
    """Where that database was, as shown to people."""
    reason: str
    """Why it was taken: by hand, before a run, before a migration, before a restore."""


@dataclass(frozen=True)
class Restored:
    """What a restore did."""

    backup: Backup
    saved: Backup | None
    """What was there before; None when there was nothing that could be read."""


class Copies(Protocol):
    """How one kind of database is copied out and in."""

    place: str
    suffix: str
    """How the names of its backup files end."""

    def name(self) -> str | None:
        """Returns the database's own name; None when there is nothing to read."""

    def copy_out(self, target: Path) -> str:
        """Writes a consistent copy into a new file; returns the database's name."""

    def verify(self, source: Path, database: str) -> None:
        """Raises when a file is not a sound copy of the database of that name."""

    def copy_in(self, source: Path) -> None:
        """Makes the database what the file says, all of it or nothing."""


class Backups:
    """The backups of one database, in one folder."""

    def __init__(
        self, copies: Copies, folder: Path, *, now: Callable[[], float], keep: int = KEEP
    ) -> None:
        self._copies = copies
        self._folder = folder
        self._now = now
        self._keep = keep

    def take(self, reason: str = "by hand", *, spare: str = "") -> Backup:
        """Takes a backup, then removes the oldest beyond what is kept; never the one spared."""
        try:
            backup = self._take(reason)
            self._thin_out(spare)
        except OSError as error:
            said = error.strerror or error
            raise WriteFailed(f"no backup could be written to {self._folder}: {said}") from error
        return backup

    def list(self) -> tuple[Backup, ...]:
        """Returns the backups there are, newest first."""
        found = sorted(self._records(), key=lambda backup: (backup.created_at, backup.id))
        return tuple(reversed(found))

    def restore(self, id_: str) -> Restored:
        """Brings a backup back, after checking it and backing up what is there now.

        A file that is damaged, was changed, or is of another database is refused, and the
        database stays as it is.
        """
        backup = self._find(id_)
        self._verify(backup)
        saved = None
        if self._copies.name() is not None:
            saved = self.take(f"before restoring {id_}", spare=id_)
        self._copies.copy_in(Path(backup.path))
        return Restored(backup, saved)

    def _take(self, reason: str) -> Backup:
        make_private_folders(self._folder)
        now = datetime.fromtimestamp(self._now(), UTC)
        id_ = f"{now:%Y%m%d-%H%M%S-%f}-{secrets.token_hex(2)}"
        target = self._folder / f"{id_}{self._copies.suffix}"
        unfinished = target.with_name(f".{target.name}.part")
        try:
            os.close(create_private(unfinished))
            database = self._copies.copy_out(unfinished)
            _sync(unfinished)
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
        backup = Backup(
            id=id_,
            created_at=now.isoformat(timespec="microseconds"),
            path=str(target),
            size_bytes=target.stat().st_size,
            sha256=_digest(target),
            database=database,
            place=self._copies.place,
            reason=reason,
        )
        self._write_record(backup)
        return backup

    def _write_record(self, backup: Backup) -> None:
        record = self._folder / f"{backup.id}{_RECORD}"
        unfinished = record.with_name(f".{record.name}.part")
        with os.fdopen(create_private(unfinished), "w", encoding="utf-8") as file:
            file.write(json.dumps(asdict(backup), indent=1) + "\n")
        _sync(unfinished)
        unfinished.replace(record)

    def _thin_out(self, spare: str) -> None:
        # Of this database only: a folder may be shared, and others count their own.
        name = self._copies.name()
        ours = [backup for backup in self.list() if backup.database == name]
        for backup in ours[self._keep :]:
            if backup.id != spare:
                Path(backup.path).unlink(missing_ok=True)
                (self._folder / f"{backup.id}{_RECORD}").unlink(missing_ok=True)

    def _records(self) -> Iterator[Backup]:
        for record in self._folder.glob(f"[!.]*{_RECORD}"):
            # Somebody else may be thinning out; a record that cannot be read describes nothing.
            with suppress(OSError, ValueError, TypeError):
                yield _read_record(record)

    def _find(self, id_: str) -> Backup:
        known = {backup.id: backup for backup in self.list()}
        if id_ not in known:
            raise UnknownName("backup", id_, known)
        return known[id_]

    def _verify(self, backup: Backup) -> None:
        path = Path(backup.path)
        name = self._copies.name()
        if name is not None and backup.database != name:
            raise StoreError(
                f"backup {backup.id} is of another database than the one that is there now "
                f"(it was taken of {backup.place}); to restore it, move the other one away first"
            )
        if name is None and backup.place != self._copies.place:
            raise StoreError(
                f"backup {backup.id} is of {backup.place}; it is not restored to "
                f"{self._copies.place}, which holds nothing to compare it with"
            )
        if not path.is_file() or _digest(path) != backup.sha256:
            raise StoreDamaged(
                f"backup {backup.id} is damaged or was changed; choose another one",
                remedy=ListBackups(),
            )
        self._copies.verify(path, backup.database)


def _read_record(record: Path) -> Backup:
    data = json.loads(record.read_text(encoding="utf-8"))
    known = {field.name for field in fields(Backup)}
    backup = Backup(**{key: value for key, value in data.items() if key in known})
    # A folder that was moved is read where it is now; a path in a record leads nowhere else.
    path = record.with_name(Path(backup.path).name)
    if backup.id != record.name.removesuffix(_RECORD) or not path.is_file():
        raise ValueError(record.name)
    return Backup(**{**asdict(backup), "path": str(path)})


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
