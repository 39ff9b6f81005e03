"""Deletes runs with everything that only they used, and copies a database while it is in use."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path

from signoff.core.digest import text_digest
from signoff.documents.regular_files import create_private
from signoff.errors import NameTaken, StoreDamaged, UnknownName
from signoff.runtime.run_transfer import RunCopy, parse_copy, references
from signoff.runtime.store_port import RunId, RunRow, StoreHealth
from signoff.store import queries as q
from signoff.store.connection import Transaction


def delete_run(db: sqlite3.Connection, run: RunId) -> None:
    """Deletes a run and the texts that no other run refers to, inside the caller's transaction."""
    own = _texts_of(db, f" WHERE run = {int(run)}", f" WHERE id = {int(run)}")
    for statement in q.DELETE_RUN:
        db.execute(statement, (run,))
    # One look at what is left: to search for each text would read the whole journal for each.
    unused = own - _texts_of(db, "", "") if own else set()
    db.executemany(q.DELETE_BLOB, [(bytes.fromhex(each),) for each in unused])


def _texts_of(db: sqlite3.Connection, of_run: str, of_row: str) -> set[str]:
    """Returns the digests of the texts that some rows refer to."""
    found = {str(digest) for (digest,) in db.execute(f"{q.DESCRIPTIONS}{of_row}")}
    for column in q.WITH_REFERENCES:
        found.update(references(text for (text,) in db.execute(f"{column}{of_run}") if text))
    return found


def damaged_journal(path: Path, row: RunRow, seq: int) -> StoreDamaged:
    """Returns the error for a commit that cannot be read; it names a backup if there is one."""
    backups = sorted(each.name for each in path.parent.glob(f"{path.name}.*.backup"))
    hint = f" ({backups[-1]} is next to it)" if backups else ""
    return StoreDamaged(
        f"run {row.name!r} is damaged: commit {seq} of its journal in {path} is not "
        f"readable; restore a backup of the file{hint}, or start the run again; "
        "other runs are not affected"
    )


def check(db: sqlite3.Connection, path: Path) -> StoreHealth:
    """Checks that a file is intact."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
    (size,) = db.execute(q.SIZE).fetchone()
    return StoreHealth(str(path), version, size, problem="" if verdict == "ok" else str(verdict))


def back_up(source: AbstractContextManager[sqlite3.Connection], target: Path) -> int:
    """Copies a database that may be in use to a new file; returns the number of its runs.

    `source` is a connection to it, which no transaction uses.
    The copy is checked before it gets its name, so a file that exists is a backup that works.
    """
    draft = target.with_name(f".{target.name[:100]}.{os.urandom(6).hex()}")
    try:
        os.close(create_private(draft))
        with source as original, closing(sqlite3.connect(draft)) as copy:
            # An incomplete copy is deleted, so it needs no rollback journal.
            copy.execute("PRAGMA journal_mode = OFF")
            original.backup(copy)
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        runs = _check(draft)
        # Unlike a rename, a link never replaces a file that another program has just written.
        os.link(draft, target)
    finally:
        draft.unlink(missing_ok=True)
    return runs


def _check(copy: Path) -> int:
    with closing(sqlite3.connect(f"{copy.as_uri()}?mode=ro", uri=True)) as db:
        (problem,) = db.execute("PRAGMA integrity_check(1)").fetchone()
        if problem != "ok":
            raise StoreDamaged(f"the database is damaged, so it was not backed up: {problem}")
        (runs,) = db.execute("SELECT count(*) FROM runs").fetchone()
    return int(runs)


# Runs that leave a SQLite store or arrive in it.


class SqliteTransfer:
    """The transfers of one database file."""

    def __init__(self, read: Transaction, write: Transaction) -> None:
        self._read, self._write = read, write

    def stage(self, name: str, document: str) -> None:
        """Stores the document of a run that arrives."""
        with self._write as db:
            db.execute(q.STAGE, (name, document))

    def staged(self, name: str) -> str | None:
        """Returns the document of a run that was staged and not admitted yet."""
        with self._read as db:
            found = db.execute(q.STAGED, (name,)).fetchone()
        return found and str(found[0])

    def admit(self, name: str) -> None:
        """Makes the staged document a run."""
        with self._write as db:
            found = db.execute(q.STAGED, (name,)).fetchone()
            if found is None:
                raise UnknownName("staged run", name)
            if db.execute(q.RUN_BY_NAME, (name,)).fetchone():
                raise NameTaken(f"run {name!r} already exists in this store; delete it first")
            _insert(db, parse_copy(found[0]))
            db.execute(q.UNSTAGE, (name,))
            db.execute(q.FORGET_MOVE, (name,))

    def retire(
        self, run: RunId, fence: int, requests: Sequence[tuple[int, str]], target: str
    ) -> bool:
        """Deletes a run that is staged elsewhere, and remembers where it went."""
        with self._write as db:
            found = db.execute(q.NAME_AT_FENCE, (run, fence)).fetchone()
            if found is None or list(db.execute(q.REQUEST_STATES, (run,))) != list(requests):
                return False
            delete_run(db, run)
            db.execute(q.REMEMBER_MOVE, (found[0], target, time.time()))
        return True

    def moved(self, name: str) -> str | None:
        """Returns where a run of this name went."""
        with self._read as db:
            found = db.execute(q.MOVED, (name,)).fetchone()
        return found and str(found[0])


def _insert(db: sqlite3.Connection, copy: RunCopy) -> None:
    row, description = copy.row, bytes.fromhex(text_digest(copy.description))
    needs = None if row.needs is None else json.dumps(row.needs)
    values = (*row[1:5], description, *row[5:14], needs)
    run = db.execute(q.ADMIT_RUN, values).lastrowid
    blobs = [(bytes.fromhex(digest), text) for digest, text in copy.blobs.items()]
    db.executemany(q.PUT_BLOB, [(description, copy.description), *blobs])
    db.executemany(q.APPEND, [(run, *each) for each in copy.journal])
    db.executemany(q.ADMIT_ITEM, [(run, *item[1:]) for item in copy.items])
    db.executemany(q.PUT_LEDGER, [(run, *entry) for entry in copy.ledger])
    late = [(run, *key, outcome) for key, outcome in copy.late.items()]
    db.executemany(q.KEEP_LATE, late)
