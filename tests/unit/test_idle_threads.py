import os
import threading

import pytest

from signoff import idle_threads
from signoff.idle_threads import in_idle_thread
from tests.patience import PATIENCE_SECONDS, wait_until


def made_in() -> int:
    """Makes a call in another thread and returns the number of that thread."""
    done, numbers = threading.Event(), []

    def call() -> None:
        numbers.append(threading.get_ident())
        done.set()

    in_idle_thread(call)
    assert done.wait(PATIENCE_SECONDS)
    return numbers[0]


def test_a_thread_that_is_done_makes_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting a thread takes longer than most calls."""
    monkeypatch.setattr(idle_threads, "_idle", [])

    first = made_in()
    wait_until(lambda: idle_threads._idle)

    assert made_in() == first != threading.get_ident()


def test_calls_are_made_where_processes_cannot_be_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows has no such function."""
    monkeypatch.delattr(os, "register_at_fork", raising=False)
    monkeypatch.setattr(idle_threads, "_fork_hooks", [])

    assert made_in() != threading.get_ident()


def test_a_call_that_hangs_holds_up_no_other() -> None:
    """It is abandoned, and its thread with it."""
    may_end = threading.Event()
    in_idle_thread(lambda: void(may_end.wait(PATIENCE_SECONDS)))

    made_in()
    may_end.set()


def void(_value: object) -> None:
    """Drops a value."""
