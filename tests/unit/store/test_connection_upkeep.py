"""Tests of deleting runs and copying databases."""

import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from signoff import Outcome, StepDef, Workflow
from signoff.core.codec import decode
from signoff.core.context import StepContext
from signoff.core.errors import StoreDamaged
from signoff.core.events import from_json
from signoff.runtime.engine import Engine
from signoff.runtime.store_port import Owner, Store
from signoff.store.sqlite import MemoryStore, SqliteStore

SHARED, OWN = "shared " * 2_000, "own " * 3_000
OWNER = Owner("o", "here", 1, "then")


def workflow(*texts: str) -> Workflow:
    def handler(_ctx: StepContext) -> tuple[Outcome, dict[str, list[str]]]:
        return Outcome.OK, {"texts": list(texts)}

    return Workflow("w", StepDef("a", handler=handler, next={Outcome.OK: None}))


async def run(store: Store, name: str, *texts: str) -> None:
    async with Engine(store) as engine:
        await engine.start(workflow(*texts), name=name)


def blobs(store: SqliteStore) -> set[str]:
    with store._read as db:
        return {text for (text,) in db.execute("SELECT text FROM blobs")}


def copies_in(folder: Path) -> list[str]:
    return [each.name for each in folder.glob("*copy*")]


def events(store: Store, name: str) -> int:
    rows = store.journal(store.row(name).id)
    return len([from_json(each) for row in rows for each in decode(row.events, store.blob)])


async def test_a_backup_is_complete_while_another_connection_writes(tmp_path: Path) -> None:
    """Nobody stops all runs for a backup."""
    store = SqliteStore(tmp_path / "runs.db")
    await run(store, "one", OWN)
    writer = store.reopen()
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            writer.beat(OWNER, 1.0)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        runs = store.backup(tmp_path / "copy.db")
    finally:
        stop.set()
        thread.join()
        writer.close()

    assert copies_in(tmp_path) == ["copy.db"]
    copy = SqliteStore(tmp_path / "copy.db")
    assert runs == 1
    assert events(copy, "one") == events(store, "one")
    assert (tmp_path / "copy.db").stat().st_mode & 0o077 == 0
    copy.close()
    store.close()


async def test_a_backup_replaces_no_file_and_leaves_no_draft(tmp_path: Path) -> None:
    """The file may be the only other copy."""
    store = MemoryStore()
    await run(store, "one", OWN)
    (tmp_path / "copy.db").write_text("precious")

    with pytest.raises(FileExistsError):
        store.backup(tmp_path / "copy.db")

    assert (tmp_path / "copy.db").read_text() == "precious"
    assert os.listdir(tmp_path) == ["copy.db"]  # noqa: PTH208  # the same without a coroutine


async def test_a_damaged_database_is_not_backed_up(tmp_path: Path) -> None:
    """A backup that cannot be restored is worse than none."""
    path = tmp_path / "runs.db"
    store = SqliteStore(path)
    for number in range(20):
        await run(store, f"run-{number}", OWN + str(number))
    store.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 9_000] = b"x" * 9_000
    path.write_bytes(content)

    damaged = SqliteStore(path)
    with pytest.raises(StoreDamaged):
        damaged.backup(tmp_path / "copy.db")

    damaged.close()
    assert not (tmp_path / "copy.db").exists()
