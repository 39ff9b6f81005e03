"""Deletes runs with everything that only they used, and copies a database while it is in use."""

from __future__ import annotations

import os
import sqlite3
from contextlib import AbstractContextManager, closing
from pathlib import Path

from signoff.documents.regular_files import create_private
from signoff.errors import StoreDamaged
from signoff.runtime.run_transfer import references
from signoff.runtime.store_port import RunId, RunRow, StoreHealth
from signoff.store import queries as q


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
