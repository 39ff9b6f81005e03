"""Opens the database file and runs transactions on it.

A new write-ahead log is preallocated with zeros, which SQLite reads as an empty log. A
commit that makes the log file longer also has to make the new file size durable, which on
most file systems doubles the cost of the commit. A preallocated log is only overwritten,
and starts again from the front when it is full.
"""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from signoff.core.errors import StoreDamaged, StoreError, StoreTooNew
from signoff.documents.regular_files import create_private, make_private_folders
from signoff.runtime.store_port import StoreHealth
from signoff.store.databases import store_error

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


IN_MEMORY = ":memory:"
"""SQLite's name for a database without a file."""

PAGE_BYTES = 8192
"""Journal rows take a few kilobytes: at this size several fit on a page and few overflow."""

LOG_BYTES = 1 << 20
"""Large enough for many commits per checkpoint, small enough to write in a millisecond."""

_RETRY_SECONDS = 0.01
_SIZE = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"


def connect(path: Path, busy_timeout: float) -> sqlite3.Connection:
    """Opens a database, creating or migrating it as needed; `busy_timeout` is in seconds."""
    if str(path) == IN_MEMORY:
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        _empty_database().backup(db)
        return db
    if path.is_file() and not os.access(path.parent, os.W_OK):
        return _open_to_read(path, busy_timeout)
    make_private_folders(path.parent)
    # Create the file ourselves so that it is private from its first byte on, but only if it is
    # new: closing any handle of an existing file drops all POSIX locks that this process holds
    # on it, and another process could then remove the write-ahead log while we use it.
    with suppress(FileExistsError):
        os.close(create_private(path))
    if path.stat().st_size == 0:
        _open(path, busy_timeout).close()
    preallocate_log(path)
    return _open(path, busy_timeout)


def _open_to_read(path: Path, busy_timeout: float) -> sqlite3.Connection:
    """Opens a database in a folder that cannot be written, such as a read-only mount.

    SQLite keeps an index of the log in a file, which it can only use there if it exists. Without
    it, the database can be read if it is complete without the log.
    """
    log, index = (path.with_name(f"{path.name}{ending}") for ending in ("-wal", "-shm"))
    # A log is written from its front, so one that begins with zeros was only preallocated.
    is_complete = not index.exists() and (not log.exists() or not any(_beginning(log)))
    address = f"file:{quote(str(path.absolute()))}?mode=ro{'&immutable=1' * is_complete}"
    db = sqlite3.connect(
        address, uri=True, isolation_level=None, check_same_thread=False, timeout=busy_timeout
    )
    try:
        migrate(db, path)
    except BaseException:
        db.close()
        raise
    return db


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(32)


@cache
def _empty_database() -> sqlite3.Connection:
    """Returns what every database in memory is copied from: creating the tables takes longer."""
    return _open(Path(IN_MEMORY), 0)


def _open(path: Path, busy_timeout: float) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=busy_timeout)
    try:
        db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        _use_log(db, busy_timeout)
        db.execute("PRAGMA synchronous = FULL")
        db.execute(f"PRAGMA wal_autocheckpoint = {LOG_BYTES // PAGE_BYTES}")
        migrate(db, path)
    except BaseException:
        db.close()
        raise
    return db


def _use_log(db: sqlite3.Connection, busy_timeout: float) -> None:
    """Switches a new database to the write-ahead log.

    While another process does the same, SQLite reports at once that the database is locked,
    instead of waiting for the time-out as everywhere else: two that waited would wait for each
    other.
    """
    until = time.monotonic() + busy_timeout
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_RETRY_SECONDS)
        else:
            return


def preallocate_log(database: Path) -> None:
    """Creates the log of a database that no process has open; an existing log is left alone."""
    log = database.with_name(f"{database.name}-wal")
    if log.exists():
        return
    draft = database.with_name(f"{database.name}-wal.{secrets.token_hex(4)}")
    # This only makes commits faster, so a full disk, a file system without hard links or
    # another process that does the same is no reason to fail.
    with suppress(OSError):
        try:
            _write_zeros(draft)
            # The link appears atomically, and fails if another process was first.
            os.link(draft, log)
        finally:
            draft.unlink(missing_ok=True)


def _write_zeros(path: Path) -> None:
    handle = create_private(path)
    try:
        if os.write(handle, bytes(LOG_BYTES)) < LOG_BYTES:
            # On a nearly full disk, leave the remaining space to the runs.
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(handle)
    finally:
        os.close(handle)


class OpenFile:
    """Follows what other processes do to a database file while it is open."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._identity = self._identify()
        self._seen = -1

    def changes(self, db: sqlite3.Connection) -> int:
        """Returns a number that differs once another connection has written.

        Raises `StoreTooNew` if that was a newer program that has migrated the file, and
        `StoreError` if the path names another file now: whatever is written here would be lost.
        """
        if self._identify() != self._identity:
            raise StoreError(f"{self._path} was replaced by another file; open it again")
        version = int(db.execute("PRAGMA data_version").fetchone()[0])
        if version != self._seen:
            migrate(db, self._path)
            self._seen = version
        return version

    def _identify(self) -> tuple[int, int] | None:
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino


class Transaction:
    """Exclusive use of a connection by one thread; with `begin`, inside a transaction.

    Every commit goes through here, so this is a plain class: a generator under
    `@contextmanager` costs several times as much.
    """

    __slots__ = ("_begin", "_db", "_lock", "_path")

    def __init__(
        self,
        db: sqlite3.Connection,
        lock: threading.RLock,
        path: Path,
        begin: Callable[[], object] | None = None,
    ) -> None:
        self._db = db
        self._lock = lock
        self._path = path
        self._begin = begin

    def __enter__(self) -> sqlite3.Connection:
        """Returns the connection once it is free."""
        self._lock.acquire()
        if self._begin is None:
            return self._db
        try:
            # Ctrl-C can interrupt anywhere and leave a transaction open; the next one ends it.
            self._roll_back()
            self._begin()
        except BaseException as problem:
            # Rolls back, releases the lock and raises the matching store error, if there is one.
            self.__exit__(None, problem, None)
            raise
        return self._db

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Commits, or rolls back after an error."""
        problem = error
        try:
            if self._begin is not None:
                problem = error or self._commit()
                if problem is not None:
                    with suppress(sqlite3.Error):
                        self._roll_back()
        finally:
            self._lock.release()
        if problem is None:
            return
        failure = store_error(self._path, problem)
        if failure is not None:
            raise failure from problem
        if problem is not error:
            raise problem

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def _commit(self) -> BaseException | None:
        try:
            self._db.execute("COMMIT")
        except BaseException as error:  # noqa: BLE001  # raised after the rollback
            return error
        return None


# Brings a database file to the current schema, by numbered migrations.
#
# A new file gets all of them. An older file is backed up first and then migrated; a newer
# one is refused and left untouched. `schema_migrations` lists what was applied.


APPLICATION_ID = 0x5160FF
"""Written into the file's header, so that another program's database is recognized."""

_CREATE_TRACKING_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at REAL NOT NULL
)
"""


class Migration(NamedTuple):
    """One numbered change of the schema."""

    version: int
    name: str
    sql: str


def shipped_migrations() -> list[Migration]:
    """Returns the migrations this version ships, in order."""
    return read_migrations(resources.files("signoff.store").joinpath("migrations"))


def read_migrations(folder: Traversable) -> list[Migration]:
    """Returns the migrations in a folder of a package, in order."""
    migrations = []
    for entry in folder.iterdir():
        if entry.name.endswith(".sql"):
            number, _, name = entry.name.removesuffix(".sql").partition("_")
            migrations.append(Migration(int(number), name, entry.read_text("utf-8")))
    return sorted(migrations)


def migrate(db: sqlite3.Connection, path: Path, migrations: list[Migration] | None = None) -> None:
    """Applies the missing migrations in one transaction, together with their records."""
    version = _version(db, path)
    if version == LATEST and migrations is None:
        return
    target = migrations if migrations is not None else shipped_migrations()
    latest = target[-1].version
    if version > latest:
        raise StoreTooNew(
            f"{path} was written by a newer signoff (tables version {version}; this one "
            f"has {latest}); upgrade signoff and start it again, or set SIGNOFF_HOME to another "
            "folder"
        )
    if version < latest:
        _apply(db, path, target)


def _apply(db: sqlite3.Connection, path: Path, migrations: list[Migration]) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have applied them while this one waited for the lock.
        version = _version(db, path)
        missing = [migration for migration in migrations if migration.version > version]
        if version and missing:
            _back_up(path, version)
        db.execute(_CREATE_TRACKING_TABLE)
        for migration in missing:
            _apply_one(db, migration)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _apply_one(db: sqlite3.Connection, migration: Migration) -> None:
    for statement in _statements(migration.sql):
        db.execute(statement)
    db.execute(
        "INSERT INTO schema_migrations VALUES (?, ?, ?)",
        (migration.version, migration.name, time.time()),
    )
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {migration.version}")


def _statements(sql: str) -> list[str]:
    """Splits a script, so that it runs inside our transaction (`executescript` would end it)."""
    statements, pending = [], ""
    for line in sql.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            statements.append(pending)
            pending = ""
    return statements


def _version(db: sqlite3.Connection, path: Path) -> int:
    # The tables first: another process may create them together with the two numbers right now.
    tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    application: int = db.execute("PRAGMA application_id").fetchone()[0]
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    if tables and application != APPLICATION_ID:
        raise StoreDamaged(f"{path} is a database of another program; choose another file")
    return version


def _back_up(path: Path, version: int) -> None:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    # A migration that fails is tried again; within one second both copies are the same.
    with suppress(FileExistsError):
        # A separate connection: SQLite cannot copy from one inside a write transaction.
        target = path.with_name(f"{path.name}.v{version}-{stamp}.backup")
        back_up(closing(sqlite3.connect(path)), target)


def _copy_content(source: sqlite3.Connection, draft: Path) -> None:
    with closing(sqlite3.connect(draft)) as copy:
        # An incomplete copy is deleted, so it needs no rollback journal.
        copy.execute("PRAGMA journal_mode = OFF")
        source.backup(copy)
    with draft.open("rb+") as file:
        os.fsync(file.fileno())


LATEST = 1
"""The newest migration's number, here so that opening a current file reads no SQL files."""


# Looks after a file: checks it, and copies it while it is in use.


def damaged_journal(path: Path, name: str, seq: int) -> StoreDamaged:
    """Returns the error for a commit that cannot be read; it names a backup if there is one."""
    backups = sorted(each.name for each in path.parent.glob(f"{path.name}.*.backup"))
    hint = f" ({backups[-1]} is next to it)" if backups else ""
    return StoreDamaged(
        f"run {name!r} is damaged: commit {seq} of its journal in {path} is not "
        f"readable; restore a backup of the file{hint}, or start the run again; "
        "other runs are not affected"
    )


def check(db: sqlite3.Connection, path: Path) -> StoreHealth:
    """Checks that a file is intact."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
    (size,) = db.execute(_SIZE).fetchone()
    return StoreHealth(str(path), version, size, problem="" if verdict == "ok" else str(verdict))


def back_up(source: AbstractContextManager[sqlite3.Connection], target: Path) -> int:
    """Copies a database that may be in use to a new file; returns the number of its runs.

    `source` is a connection to it, which no transaction uses.
    The copy is checked before it gets its name, so a file that exists is a backup that works.
    """
    draft = target.with_name(f".{target.name[:100]}.{os.urandom(6).hex()}")
    try:
        os.close(create_private(draft))
        with source as original:
            _copy_content(original, draft)
        runs = _check(draft)
        # Unlike a rename, a link never replaces a file that another program has just written.
        os.link(draft, target)
    finally:
        draft.unlink(missing_ok=True)
    return runs


def _check(copy: Path) -> int:
    # Nobody else knows the copy. Opened as a file that may change, it would get a log beside it.
    with closing(sqlite3.connect(f"{copy.as_uri()}?mode=ro&immutable=1", uri=True)) as db:
        (problem,) = db.execute("PRAGMA integrity_check(1)").fetchone()
        if problem != "ok":
            raise StoreDamaged(f"the database is damaged, so it was not backed up: {problem}")
        (runs,) = db.execute("SELECT count(*) FROM runs").fetchone()
    return int(runs)
