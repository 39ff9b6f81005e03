import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from signoff.errors import UsageError
from signoff.guarded_db.client import Connections


def make(path: Path, words: int) -> Path:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE chapters (words INTEGER)")
        db.execute("INSERT INTO chapters VALUES (?)", [words])
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return make(tmp_path / "book.db", 1)


def words(connections: Connections) -> object:
    return connections.reader().query("SELECT words FROM chapters")[0]["words"]


def test_all_steps_share_one_connection_to_read_and_one_to_write(file: Path) -> None:
    """A thousand items at once must not open a thousand files."""
    connections = Connections(str(file))

    readers = {id(connections.reader()) for _ in range(1000)}
    with connections.writer() as one, connections.writer() as other:
        same = one is other

    assert len(readers) == 1
    assert same
    assert id(one) not in readers


def test_a_file_that_was_replaced_is_opened_again(file: Path, tmp_path: Path) -> None:
    """After a restore by moving a file, the old file must not be changed."""
    connections = Connections(str(file))
    before = words(connections)
    with connections.writer() as old:
        pass

    make(tmp_path / "copy.db", 2).replace(file)

    assert (before, words(connections)) == (1, 2)
    with connections.writer() as new:
        assert new is not old


def test_a_missing_file_is_reported_and_found_when_it_is_back(file: Path, tmp_path: Path) -> None:
    """The step fails with a clear message, and works once the file is back."""
    connections = Connections(str(file))
    connections.reader()
    away = file.rename(tmp_path / "away.db")

    with pytest.raises(UsageError, match="there is no database at"):
        connections.reader()
    away.rename(file)

    assert words(connections) == 1


def test_connections_are_closed_with_their_workflow(file: Path) -> None:
    """A server that runs many workflows would otherwise run out of files."""
    connections = Connections(str(file))
    with connections.writer() as writer:
        writer.execute("UPDATE chapters SET words = 3 WHERE words = 1")
    words(connections)
    log = file.with_name("book.db-wal")
    open_before = log.exists()

    del connections, writer

    assert open_before
    assert not log.exists()


def test_writes_go_to_the_current_file(file: Path, tmp_path: Path) -> None:
    """Work on a file that was replaced during a long step would be lost."""
    connections = Connections(str(file))
    with connections.writer() as before:
        before.execute("UPDATE chapters SET words = 2 WHERE words = 1")

    for tail in ("-wal", "-shm"):
        file.with_name(file.name + tail).unlink(missing_ok=True)
    make(tmp_path / "other.db", 7).replace(file)
    with connections.writer() as writer:
        writer.execute("UPDATE chapters SET words = 8 WHERE words = 7")

    assert words(connections) == 8


def test_who_waits_for_the_programs_own_pool_does_not_keep_others_waiting(file: Path) -> None:
    """The event loop would stand still that has to give a connection back."""
    wanted, returned = threading.Event(), threading.Event()

    @contextmanager
    def pool() -> Iterator[sqlite3.Connection]:
        if threading.current_thread().name == "writes":
            wanted.set()
            assert returned.wait(30)
        with closing(sqlite3.connect(file, check_same_thread=False)) as db:
            yield db

    connections = Connections(pool)
    connections.lease()

    def write() -> None:
        with connections.writer():
            pass

    writes = threading.Thread(target=write, name="writes")
    reads = threading.Thread(target=connections.lease)
    writes.start()
    assert wanted.wait(30)
    reads.start()
    reads.join(10)
    is_waiting = reads.is_alive()
    returned.set()
    writes.join()
    reads.join()
    connections.release()
    connections.release()

    assert not is_waiting
