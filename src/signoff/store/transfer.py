"""Runs that leave a SQLite store or arrive in it."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence

from signoff.core.digest import text_digest
from signoff.errors import NameTaken, UnknownName
from signoff.runtime.run_transfer import RunCopy, parse_copy
from signoff.runtime.store_port import RunId
from signoff.store import queries as q
from signoff.store.connection import Transaction
from signoff.store.upkeep import delete_run


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
