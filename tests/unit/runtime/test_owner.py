import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from signoff.core.errors import RunBusy, StoreBusy, StoreError
from signoff.runtime.owner import (
    BEAT_SECONDS,
    Heartbeat,
    birth_of,
    is_alive,
    pause_after,
    this_process,
)
from signoff.runtime.store_port import LEASE_SECONDS, Owner, Store
from signoff.store.postgres.store import SETTLED_SECONDS
from signoff.store.sqlite import MemoryStore
from signoff.testing import FrozenClock, WrappedStore
from tests.patience import PATIENCE_SECONDS
from tests.store_suite.journal_writer import BOB, JournalWriter

SOON = PATIENCE_SECONDS
"""Far longer than anything here takes; only a test that fails waits for it."""


def test_each_start_of_a_process_is_an_owner_of_its_own() -> None:
    """Two engines in one process must not take runs from each other."""
    assert this_process().id != this_process().id


def dead_pid() -> int:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert birth_of(gone.pid) is None
    return gone.pid


@pytest.mark.parametrize(
    ("change", "alive"),
    [
        (dict, True),
        (lambda: {"pid": dead_pid()}, False),
        (lambda: {"born": "long ago"}, False),
        (lambda: {"host": "elsewhere"}, None),
    ],
    ids=["itself", "a dead process", "a later one of its number", "on another host"],
)
def test_only_a_process_that_can_be_seen_is_dead_or_alive(
    change: Callable[[], dict[str, Any]], alive: bool | None
) -> None:
    """Runs of a dead process are taken over at once; those of another host only with time."""
    assert is_alive(replace(this_process(), **change())) is alive


def test_a_process_that_has_ended_and_was_not_buried_is_dead() -> None:
    """A parent that forgets to wait for it would otherwise keep its runs locked."""
    zombie = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert zombie.stdout is not None
    zombie.stdout.read()
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)

    assert birth_of(zombie.pid) is None

    zombie.wait()
    zombie.stdout.close()


class Bed:
    """A heartbeat with everything around it."""

    def __init__(self, store: Store | None = None) -> None:
        self.inner = MemoryStore()
        self.store = store or self.inner
        self.clock = FrozenClock()
        self.owner = Owner("me", "here", 1, "")
        self.heard: list[tuple[str, str]] = []
        self.thread: threading.Thread | None = None
        self._something_heard = asyncio.Event()
        self.heartbeat = Heartbeat(self.store, self.owner, self.clock, self._hear)

    def _hear(self, run: str, why: str) -> None:
        self.heard.append((run, why))
        self.thread = threading.current_thread()
        self._something_heard.set()

    async def something_heard(self) -> None:
        async with asyncio.timeout(SOON):
            await self._something_heard.wait()

    def leased_until(self) -> float:
        """Returns when the lease runs out; no port has a use for it, so the table is read."""
        with self.inner._read as db:
            return float(db.execute("SELECT until FROM owners WHERE id = 'me'").fetchone()[0])

    def is_held(self, run: JournalWriter) -> bool:
        """Tells whether a stranger is refused the run."""
        try:
            self.inner.take(run.run, BOB, lambda _owner: None)
        except RunBusy:
            return True
        return False


@pytest.fixture
async def bed() -> AsyncIterator[Bed]:
    bed = Bed()
    yield bed
    bed.heartbeat.stop()


async def test_a_heartbeat_announces_its_owner(bed: Bed) -> None:
    """Any process may take a run whose owner is unknown."""
    run = JournalWriter(bed.inner, owner=bed.owner)
    run.begin()

    bed.heartbeat.start()

    assert bed.is_held(run)


async def test_a_second_start_changes_nothing(bed: Bed) -> None:
    """Every run of the process starts it."""
    before = threading.active_count()

    bed.heartbeat.start()
    bed.heartbeat.start()

    assert threading.active_count() == before + 1


async def test_a_request_to_cancel_reaches_the_loop(bed: Bed) -> None:
    """The runner lives there; called from another thread it would break."""
    run = JournalWriter(bed.inner, owner=bed.owner)
    run.begin()
    bed.heartbeat.start()

    bed.inner.ask_cancel(run.run, "too expensive")
    await bed.something_heard()

    assert bed.heard[0] == ("run", "too expensive")
    assert bed.thread is threading.main_thread()


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="nothing here tells of signals")
async def test_the_thread_leaves_signals_to_the_event_loops(bed: Bed) -> None:
    """A Ctrl-C that this thread received would not wake the loop, and the run would continue."""
    run = JournalWriter(bed.inner, owner=bed.owner)
    run.begin()
    bed.heartbeat.start()
    bed.inner.ask_cancel(run.run, "it has started by now")
    await bed.something_heard()

    thread = bed.heartbeat._thread

    assert thread is not None
    assert _blocked_by(thread) & (1 << (signal.SIGINT - 1))


def _blocked_by(thread: threading.Thread) -> int:
    """Returns the signals a thread does not take, as the kernel has them."""
    status = Path(f"/proc/self/task/{thread.native_id}/status").read_text()
    (blocked,) = (line.split()[1] for line in status.splitlines() if line.startswith("SigBlk"))
    return int(blocked, 16)


def test_a_second_event_loop_is_served_like_the_first() -> None:
    """A program may call `asyncio.run` once for every run, with one engine for all."""
    bed = Bed()
    run = JournalWriter(bed.inner, owner=bed.owner)
    run.begin()
    bed.inner.ask_cancel(run.run, "too expensive")

    async def hear() -> None:
        bed._something_heard = asyncio.Event()
        bed.heartbeat.start()
        await bed.something_heard()

    for _ in range(2):
        asyncio.run(hear())
    bed.heartbeat.stop()

    assert len(bed.heard) >= 2


async def test_a_lease_is_renewed_while_the_loop_is_blocked(bed: Bed) -> None:
    """A handler that computes for an hour must not lose its run."""
    run = JournalWriter(bed.inner, owner=bed.owner)
    run.begin()
    bed.heartbeat.start()
    bed.clock.advance(BEAT_SECONDS)

    renewed = threading.Event()
    _wait_until(renewed, lambda: bed.leased_until() > bed.clock.now() + LEASE_SECONDS - 1)

    bed.clock.advance(LEASE_SECONDS - 1)
    assert bed.is_held(run)


async def test_stopping_lets_go(bed: Bed) -> None:
    """The next process doesn't have to wait until the lease expires."""
    run = JournalWriter(bed.inner, owner=bed.owner)
    run.begin()
    bed.heartbeat.start()

    bed.heartbeat.stop()

    assert bed.inner.row("run").owner is None


class ShakyStore(WrappedStore):
    """Is busy for a moment when opened again, and when first looked at."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.troubles = 0

    def reopen(self) -> Store:
        if self.troubles < 1:
            self.troubles += 1
            raise StoreBusy
        return self

    def cancels(self, owner: Owner) -> list[tuple[str, str]]:
        if self.troubles < 2:
            self.troubles += 1
            raise StoreBusy
        return self.inner.cancels(owner)


async def test_a_store_that_is_busy_for_a_moment_does_not_stop_the_heart() -> None:
    """The process continues, so it must not lose its lease."""
    inner = MemoryStore()
    bed = Bed(ShakyStore(inner))
    run = JournalWriter(inner, owner=bed.owner)
    run.begin()
    inner.ask_cancel(run.run, "too expensive")

    bed.heartbeat.start()
    await bed.something_heard()
    bed.heartbeat.stop()

    assert bed.heard[0] == ("run", "too expensive")


def test_a_server_that_refuses_is_asked_less_and_less_often() -> None:
    """With a wrong password, every process would log in four times a second, and in vain."""
    pauses = [pause_after(failures) for failures in (1, 2, 3, 4, 5, 10_000)]

    assert pauses == [0.25, 0.5, 1.0, 2.0, 2.0, 2.0]
    assert max(pauses) <= BEAT_SECONDS < SETTLED_SECONDS < LEASE_SECONDS


class RefusingStore(WrappedStore):
    """Refuses to be opened again, as after the password was changed."""

    def reopen(self) -> Store:
        raise StoreError("refuses the connection")


async def test_a_heart_that_cannot_beat_pauses_for_longer_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bed = Bed(RefusingStore(MemoryStore()))
    waits: list[float] = []

    def stopped_after(wait: float) -> bool:
        waits.append(wait)
        return len(waits) == 5

    monkeypatch.setattr(bed.heartbeat, "_is_stopped_after", stopped_after)
    bed.heartbeat.start()
    bed.heartbeat.stop()

    assert waits[2:] == [0.25, 0.5, 1.0]


def _wait_until(event: threading.Event, holds: Callable[[], bool]) -> None:
    """Blocks this thread, and with it the loop, until something holds."""
    for _ in range(int(SOON / 0.01)):
        if holds():
            return
        event.wait(0.01)
    raise AssertionError("it never came to hold")
