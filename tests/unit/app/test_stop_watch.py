import threading
from pathlib import Path

import pytest

from signoff.app import stop_watch
from signoff.app.stop_watch import StopWatch
from signoff.errors import WriteFailed
from signoff.runtime.store_port import Store
from signoff.store.memory import MemoryStore
from tests.patience import wait_until


class Server(MemoryStore):
    """A store that a test can take away."""

    def __init__(self) -> None:
        super().__init__()
        self.is_away = False
        self.asked = 0

    def reopen(self) -> Store:
        self.asked += 1
        if self.is_away:
            raise WriteFailed("cannot be reached")
        return self

    def close(self) -> None:
        """Stays open."""


class File(Server):
    def local_file(self) -> Path | None:
        return Path("signoff.db")


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop_watch, "PATIENCE_SECONDS", 0.01)


def test_a_stopped_worker_is_given_as_long_as_its_server_answers() -> None:
    """It may have to end calls first; the runs of one that is ended have to wait for its lease."""
    given_up = threading.Event()
    server = Server()
    with StopWatch(server, given_up.set) as watch:
        watch.stopping()
        wait_until(lambda: server.asked > 2, "several looks")
        assert not given_up.is_set()

        server.is_away = True
        wait_until(given_up.is_set, "the end")
    wait_until(lambda: not watches(), "the end of the watch")


def test_a_worker_that_works_or_has_stopped_is_left_alone() -> None:
    """While it works, it waits for a lost server for as long as it takes."""
    given_up = threading.Event()
    server = Server()
    server.is_away = True
    with StopWatch(server, given_up.set):
        assert watches()
    wait_until(lambda: not watches(), "the end of the watch")

    assert not server.asked
    assert not given_up.is_set()


def test_a_worker_on_a_file_needs_no_watch() -> None:
    """A file is not away."""
    with StopWatch(File(), _fail) as watch:
        watch.stopping()

        assert not watches()


def watches() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "signoff-stop"]


def _fail() -> None:
    raise AssertionError("given up")
