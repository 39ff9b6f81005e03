"""Threads for calls that may hang: each can be abandoned, and none keeps the program from exiting.

Starting a thread takes longer than most calls, so one that is done waits a while for the next.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

IDLE_SECONDS = 5.0
"""How long a thread waits for another call before it ends."""

_Queue = SimpleQueue[Callable[[], None]]
_idle: list[_Queue] = []
"""The threads that have nothing to do, each by the queue of its calls."""
_fork_hooks: list[object] = []


def in_idle_thread(call: Callable[[], None]) -> None:
    """Starts a call, which must not raise, in a thread that has nothing to do, or in a new one."""
    if not _fork_hooks and hasattr(os, "register_at_fork"):
        # A forked process has none of these threads. Windows cannot fork.
        os.register_at_fork(after_in_child=_idle.clear)
        _fork_hooks.append(_idle)
    try:
        queue = _idle.pop()
    except IndexError:
        queue = SimpleQueue()
        threading.Thread(target=_serve, args=(queue,), name="signoff-call", daemon=True).start()
    queue.put(call)


def _serve(queue: _Queue) -> None:
    """Makes calls one after the other, until there is none for a while."""
    while True:
        try:
            queue.get(timeout=IDLE_SECONDS)()
        except Empty:
            try:
                _idle.remove(queue)
            except ValueError:
                continue  # It was taken this moment, so there is a call on its way.
            return
        _idle.append(queue)
