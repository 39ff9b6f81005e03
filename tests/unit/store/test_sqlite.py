import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from signoff.core.errors import StoreBusy, StoreDamaged, StoreError, StoreTooNew, WriteFailed
from signoff.store.sqlite import SqliteStore
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.store_suite.journal_writer import ANN, JournalWriter, start_run


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "signoff.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(path)) as opened:
        yield opened


def one_line(error: BaseException, path: Path) -> bool:
    return str(path) in str(error) and "\n" not in str(error)


# A fresh file


def test_a_new_database_is_readable_by_its_owner_only(store: SqliteStore, path: Path) -> None:
    """Other users must never be able to read prompts and replies."""
    start_run(store)

    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in path.parent.iterdir()}

    assert modes["signoff.db"] == 0o600
    assert all(mode & 0o077 == 0 for mode in modes.values()), modes
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_commits_survive_a_power_cut(store: SqliteStore) -> None:
    """Both settings are needed to keep that promise."""
    assert store._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store._db.execute("PRAGMA synchronous").fetchone() == (2,)


CRAMPED = """
import resource, sys
from pathlib import Path
from signoff.store.sqlite import SqliteStore
path = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))
store = SqliteStore(path)
print(sum(file.stat().st_size for file in path.parent.glob("*-wal*")))
"""


def test_the_last_space_on_a_disk_is_left_to_the_runs(path: Path) -> None:
    """Preallocating the log would fill the disk, and then not even `show` would work."""
    pytest.importorskip("resource")

    done = subprocess.run([sys.executable, "-c", CRAMPED, path], capture_output=True, text=True)

    assert done.stderr == ""
    assert int(done.stdout) < 500_000


# Files that are not ours, or not whole


def test_another_programs_database_is_rejected_and_left_unchanged(path: Path) -> None:
    """A mistyped path must not overwrite the database of another program."""
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as foreign:
        foreign.execute("CREATE TABLE bookmarks (url TEXT)")
        foreign.commit()
    before = path.read_bytes()

    with pytest.raises(StoreDamaged, match="database of another program") as refused:
        SqliteStore(path)

    assert one_line(refused.value, path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["signoff.db"]


@pytest.mark.parametrize("content", [b"not a database at all\n" * 500, b"SQLite format 3\0" * 99])
def test_a_file_that_is_not_a_database_is_reported_in_one_line(path: Path, content: bytes) -> None:
    """The remedy is to restore a backup or to move the file away."""
    path.parent.mkdir()
    path.write_bytes(content)

    with pytest.raises(StoreDamaged) as refused:
        SqliteStore(path)

    assert one_line(refused.value, path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("backup", ["", "signoff.db.v1-20260301-120000.backup"])
def test_a_run_with_a_damaged_journal_is_reported_with_a_remedy(
    store: SqliteStore, path: Path, backup: str
) -> None:
    """A JSON error alone names neither the run nor what to do."""
    start_run(store, "one").append()
    start_run(store, "two").append()
    store._db.execute("UPDATE journal SET events = '[{' WHERE run = 1 AND seq = 2")
    if backup:
        (path.parent / backup).touch()

    with pytest.raises(StoreDamaged) as error:
        store.load("one")
    with pytest.raises(StoreDamaged, match="run 'one' is damaged"):
        store.journal(store.row("one").id)

    assert one_line(error.value, path)
    assert "run 'one' is damaged: commit 2 of its journal" in str(error.value)
    assert "restore a backup" in str(error.value)
    assert backup in str(error.value)
    assert "other runs are not affected" in str(error.value)
    assert len(store.load("two").tail) == 2


def test_a_damaged_checkpoint_is_ignored(store: SqliteStore) -> None:
    """Everything is in the journal; the checkpoint only saves time."""
    start_run(store, "one").append(checkpoint="{}")
    store._db.execute("UPDATE checkpoints SET state = '{'")

    stored = store.load("one")

    assert (stored.checkpoint, len(stored.tail)) == (None, 2)


@pytest.mark.parametrize("damage", ["cut off", "overwritten"])
def test_a_damaged_database_is_reported_in_one_line(path: Path, damage: str) -> None:
    """Never a wrong answer, and never a traceback of SQLite's own."""
    with closing(SqliteStore(path)) as store:
        run = start_run(store)
        for _ in range(200):
            run.append(events='["' + "x" * 3000 + '"]')
    content = path.read_bytes()
    half = len(content) // 2
    path.write_bytes(content[:half] if damage == "cut off" else content[:half] + b"\xff" * half)

    with pytest.raises(StoreDamaged) as reported, closing(SqliteStore(path)) as store:
        store.load("run")

    assert one_line(reported.value, path)


def test_an_unknown_status_is_an_error(store: SqliteStore, path: Path) -> None:
    """Written by a newer version or edited by hand: the message says what to do."""
    start_run(store)
    with closing(sqlite3.connect(path)) as other:
        other.execute("UPDATE runs SET status = 'weird'")
        other.commit()

    with pytest.raises(StoreTooNew, match="'weird'"):
        store.rows()


def test_a_missing_text_is_reported(store: SqliteStore, path: Path) -> None:
    """A missing artifact is not an empty artifact."""
    with pytest.raises(StoreDamaged) as reported:
        store.blob("ab" * 32)

    assert one_line(reported.value, path)


# Disks that fail


def test_a_full_disk_is_reported_and_loses_nothing(store: SqliteStore, path: Path) -> None:
    """Free some space, resume: everything up to the last commit is there."""
    run = start_run(store)
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(WriteFailed, match="disk is full") as failed:
        run.append(events='["' + "x" * 100_000 + '"]', step="lost")

    assert one_line(failed.value, path)
    assert store.row("run").step == "draft"
    store._db.execute("PRAGMA max_page_count = 1000000")
    assert run.append(step="again").accepted
    assert store.row("run").step == "again"


def test_a_read_only_database_is_reported(store: SqliteStore, path: Path) -> None:
    """A disk remounted after an error looks like this."""
    run = start_run(store)
    store._db.execute("PRAGMA query_only = ON")

    with pytest.raises(WriteFailed, match="cannot be written") as failed:
        run.append()

    assert one_line(failed.value, path)
    assert store.row("run").head == 1


def test_a_path_through_a_file_is_reported(tmp_path: Path) -> None:
    """A file where the home should be."""
    (tmp_path / "home").touch()

    with pytest.raises(WriteFailed) as failed:
        SqliteStore(tmp_path / "home" / "signoff.db")

    assert one_line(failed.value, tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write where others may not")
def test_a_read_only_directory_is_reported(path: Path) -> None:
    """Another user's checkout, or a read-only image."""
    path.parent.mkdir(mode=0o500)

    with pytest.raises(WriteFailed) as failed:
        SqliteStore(path)

    assert one_line(failed.value, path)


# Other processes


def test_a_database_locked_for_too_long_is_busy(path: Path) -> None:
    """Another process has locked it; the only remedy is to try again later."""
    with closing(SqliteStore(path, busy_timeout=0.05)) as store, closing(_other(path)) as other:
        run = start_run(store)
        other.execute("BEGIN IMMEDIATE")

        with pytest.raises(StoreBusy) as busy:
            run.append()

        assert one_line(busy.value, path)
        other.execute("ROLLBACK")
        assert run.append().accepted


def test_a_database_that_another_process_is_creating_is_waited_for(path: Path) -> None:
    """Of many processes that started together on a new file, some failed on a busy machine."""
    path.parent.mkdir()
    path.touch()
    opened: list[SqliteStore] = []
    with closing(_other(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        opener = threading.Thread(target=lambda: opened.append(SqliteStore(path)))
        opener.start()
        # Long enough to fail, if it does not wait.
        opener.join(0.2)
        other.execute("ROLLBACK")
    opener.join(PATIENCE_SECONDS)

    (store,) = opened
    with closing(store):
        assert store.rows() == []


def test_a_commit_without_waiting_fails_at_once_if_the_database_is_locked(
    store: SqliteStore, path: Path
) -> None:
    """The event loop must not block while another process writes."""
    run = start_run(store)
    with closing(_other(path)) as other:
        other.execute("BEGIN IMMEDIATE")

        with pytest.raises(StoreBusy):
            store.commit([run.next()], wait=False)

        other.execute("ROLLBACK")
    (result,) = store.commit([run.next()], wait=False)
    assert result.accepted


def test_a_batch_that_fails_halfway_leaves_nothing(store: SqliteStore) -> None:
    """A transaction is all or nothing."""
    one, two = start_run(store, "one"), start_run(store, "two")

    with pytest.raises(StoreDamaged):
        store.commit([one.next(), two.next(used=[99])])

    assert store.row("one").head == 1
    assert one.append().accepted


def test_a_name_with_half_a_character_is_refused_instead_of_hanging(store: SqliteStore) -> None:
    """What cannot be stored must be reported, or a run would wait forever."""
    with pytest.raises(StoreError, match="half a character"):
        JournalWriter(store, "bad\ud800name").begin()

    assert start_run(store, "good").head == 1


def _other(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, timeout=0.01)


def test_commits_are_synced_after_an_unsynced_lease(store: SqliteStore) -> None:
    """A lease need not survive a power cut; a step that was paid for must."""
    run = start_run(store)
    statements: list[str] = []
    store._db.set_trace_callback(statements.append)

    store.beat(ANN, 100.0)
    store.take(run.run, ANN, lambda _owner: None)
    run.fence += 1
    run.append()
    store.leave(ANN)
    run.append()

    levels = [each.split()[-1] for each in statements if "synchronous" in each or "COMMIT" in each]
    assert " ".join(levels) == "NORMAL COMMIT COMMIT FULL COMMIT NORMAL COMMIT FULL COMMIT"


def test_an_interrupted_write_leaves_no_lock(store: SqliteStore, path: Path) -> None:
    """After Ctrl-C during a locked write, the file must not stay locked."""
    main = threading.get_ident()
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        # A function of C, in which no signal is handled: the interrupt comes after it.
        statements: list[str] = []
        store._db.set_trace_callback(statements.append)

        def strike_and_let_go() -> None:
            wait_until(lambda: any(each.startswith("BEGIN") for each in statements))
            signal.pthread_kill(main, signal.SIGINT)
            other.execute("ROLLBACK")

        striking = threading.Thread(target=strike_and_let_go)
        striking.start()

        with pytest.raises(KeyboardInterrupt):
            store.beat(ANN, 1.0)

        striking.join()
    assert not store._db.in_transaction
    with closing(SqliteStore(path, busy_timeout=0.0)) as another:
        another.beat(ANN, 2.0)


def test_an_unfinished_transaction_is_rolled_back_by_the_next(store: SqliteStore) -> None:
    """Ctrl-C can interrupt between any two lines."""
    store._write.__enter__().execute("DELETE FROM runs")

    start_run(store)

    assert [row.name for row in store.rows()] == ["run"]


def test_late_use_of_a_closed_store_is_reported(path: Path) -> None:
    """It is an error like any other store error."""
    store = SqliteStore(path)
    store.close()

    for late in (store.rows, lambda: start_run(store)):
        with pytest.raises(StoreError, match="closed"):
            late()
