"""This process as an owner of runs: who it is, whether others live, and its heartbeat."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from signoff.core.digest import text_digest
from signoff.core.errors import StoreBusy, StoreError, WriteFailed
from signoff.runtime.ports import Clock
from signoff.runtime.store_port import LEASE_SECONDS, Owner, Store, Topic, subscribed

if TYPE_CHECKING:
    import asyncio

BEAT_SECONDS = 2.0
"""How often leases are renewed: several beats may fail before one ends."""

LOOK_SECONDS = 0.25
"""How often a process looks whether one of its runs was asked to cancel.

A process that the store tells so at once looks only with each beat.
"""


def this_process() -> Owner:
    """Describes the running process, so that it differs from a later one with the same pid."""
    pid = os.getpid()
    return Owner(secrets.token_hex(8), this_host(), pid, birth_of(pid) or "")


def is_alive(owner: Owner) -> bool | None:
    """Tells whether an owner still runs; None when it is on another host."""
    if owner.host != this_host():
        return None
    return birth_of(owner.pid) == owner.born


def birth_of(pid: int) -> str | None:
    """Returns when a process started, which no later process with its pid shares.

    None means there is no such process.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return None
        return _birth_without_proc(pid)
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


def _birth_without_proc(pid: int) -> str | None:
    import psutil  # type: ignore[import-untyped]  # it brings no types

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else repr(process.create_time())
    except psutil.NoSuchProcess:
        return None
    except psutil.AccessDenied:
        return ""


def this_host() -> str:
    """Names the host whose pids mean the same as ours: a container is a host of its own."""
    try:
        space = str(Path("/proc/self/ns/pid").readlink())
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return socket.gethostname()
    return f"{socket.gethostname()}/{boot[:8]}/{space}"


def pause_after(failures: int) -> float:
    """Returns how long to wait after so many failures in a row, in seconds.

    A server that refuses a wrong password, or has no connection left, is not asked four times a
    second by every process. One that comes back is asked in time to renew a lease.
    """
    return min(LOOK_SECONDS * 2.0 ** min(failures - 1, 10), BEAT_SECONDS)


class Heartbeat:
    """A thread that renews this process's leases and hears requests to cancel.

    It is a thread because code that blocks the event loop must not lose its run.
    """

    def __init__(
        self, store: Store, owner: Owner, clock: Clock, on_cancel: Callable[[str, str], None]
    ) -> None:
        self._store = store
        self._owner = owner
        self._clock = clock
        self._on_cancel = on_cancel
        self._stop = threading.Event()
        self._wake = threading.Event()
        """Set when the thread has something to do before its time."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._last = 0.0
        """When the owner was last announced."""
        self._thread: threading.Thread | None = None

    def start(self, *, announce: bool = True) -> None:
        """Announces the owner and begins to beat; a second call does nothing.

        Taking a run announces its owner too, so `announce` can be False before that.
        """
        import asyncio

        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return
        # The loop of an earlier thread has ended, so that thread has nothing left to call.
        self._end()
        if announce:
            self._store.beat(self._owner, LEASE_SECONDS)
        self._last = self._clock.monotonic()
        self._loop = loop
        self._stop.clear()
        self._wake.clear()
        self._thread = threading.Thread(
            target=self._beat, args=(loop,), name="signoff-heartbeat", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread and forgets the owner."""
        if self._loop is None:
            return
        self._end()
        # If the store is away, the leases end by themselves. An error that ended the run because
        # of that must not be replaced by this one.
        with suppress(StoreBusy, WriteFailed):
            self._store.leave(self._owner)

    def _end(self) -> None:
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self._loop = self._thread = None

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        # A signal that this thread received would not wake the event loop's own, and a Ctrl-C
        # would be noticed only when something else happens.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        # Most runs that are resumed end before the first look, and need no second connection.
        if self._is_stopped_after(LOOK_SECONDS):
            return
        with subscribed(self._store.listener(), [Topic.CANCEL], self._wake.set) as is_told:
            self._beat_until_stopped(loop, is_told)

    def _beat_until_stopped(
        self, loop: asyncio.AbstractEventLoop, is_told: Callable[[], bool]
    ) -> None:
        store: Store | None = None
        failures, wait = 0, 0.0
        while not self._is_stopped_after(wait):
            wait = LOOK_SECONDS
            try:
                store = store or self._store.reopen()
                if self._clock.monotonic() - self._last >= BEAT_SECONDS:
                    store.beat(self._owner, LEASE_SECONDS)
                    self._last = self._clock.monotonic()
                for run, why in store.cancels(self._owner):
                    loop.call_soon_threadsafe(self._on_cancel, run, why)
                if is_told():
                    wait = max(0.0, self._last + BEAT_SECONDS - self._clock.monotonic())
                failures = 0
            except (StoreError, RuntimeError):
                # Busy or gone for a moment, or the loop has just closed: the next beat
                # tries again, and losing the lease is caught by the fence.
                failures += 1
                wait = pause_after(failures)
        if store is not None and store is not self._store:
            store.close()

    def _is_stopped_after(self, wait: float) -> bool:
        """Waits until there is something to do; tells whether that is to stop."""
        self._wake.wait(wait)
        self._wake.clear()
        return self._stop.is_set()


# Temporary folders that do not pile up when processes are killed.
#
# A folder's name contains the process that created it. The next process that needs a folder removes
# those whose process is gone. Folders of another machine, container or boot are left alone, because
# their processes cannot be seen from here.


_NAME = re.compile(r"signoff-([0-9a-f]{8})-(\d+)-([\d.]+)-")


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Creates a folder that only the owner can read, and removes it at the end."""
    folder = make_scratch_folder()
    try:
        yield folder
    finally:
        if folder.is_symlink():
            # A program has replaced it: the link goes, and where it leads is not touched.
            folder.unlink()
        shutil.rmtree(folder, ignore_errors=True)


def make_scratch_folder() -> Path:
    """Creates a folder that only the owner can read; the caller removes it."""
    remove_leftovers()
    pid = os.getpid()
    prefix = f"signoff-{_host()}-{pid}-{birth_of(pid)}-"
    return Path(tempfile.mkdtemp(prefix=prefix)).resolve()


@cache
def remove_leftovers() -> None:
    """Removes the folders of processes that were killed; once per process is enough."""
    for folder in Path(tempfile.gettempdir()).glob("signoff-*"):
        match = _NAME.match(folder.name)
        if match is None or match[1] != _host() or birth_of(int(match[2])) == match[3]:
            continue
        try:
            # Everyone can write to the temporary folder, so another user may have this name.
            ours = not folder.is_symlink() and folder.stat().st_uid == os.getuid()
        except OSError:
            continue  # Another process has removed it.
        if ours:
            shutil.rmtree(folder, ignore_errors=True)


@cache
def _host() -> str:
    return text_digest(this_host())[:8]
