import pytest

from signoff.store.sqlite import MemoryStore
from signoff.testing import FrozenClock
from signoff.testing.doubles import Countdown, CrashingStore, When
from tests.store_suite.journal_writer import ANN, JournalWriter


class Died(BaseException):
    """Simulates the end of the process, which the test itself could not survive."""


def die() -> None:
    raise Died


def mortal(at: int, when: When) -> CrashingStore:
    return CrashingStore(MemoryStore(), at=at, countdown=Countdown(at, when, die))


@pytest.mark.parametrize(("when", "stored"), [("before", 2), ("after", 3)])
def test_it_strikes_at_the_write_it_is_told(when: When, stored: int) -> None:
    """Before: the write is lost. After: it is the last that counts."""
    store = mortal(4, when)
    run = JournalWriter(store)

    store.beat(ANN, 1.0)
    run.begin()
    run.append()
    with pytest.raises(Died):
        run.append()

    assert store.writes == 4
    assert store.inner.row("run").head == stored


def test_every_way_to_write_counts_and_no_way_to_read() -> None:
    """A process dies between an answer and a commit, too; what is read cannot be lost."""
    store = mortal(0, "before")
    run = JournalWriter(store)
    run.begin()

    store.rows()
    store.load("run")
    store.items()
    assert store.writes == 1

    store.take(run.run, ANN, lambda _owner: False)
    store.ask_cancel(run.run, "why")
    store.adopt(run.run, "d", "{}")
    store.keep_late(run.run, "e", 1, "{}")
    store.leave(ANN)

    assert store.writes == 6


def test_a_store_opened_again_counts_together_with_the_first() -> None:
    """Threads have their own connection; the process has one life."""
    store = mortal(2, "before")
    JournalWriter(store, "one").begin()

    with pytest.raises(Died):
        JournalWriter(store.reopen(), "two").begin()


def test_only_the_wall_clock_can_jump_back() -> None:
    """Daylight saving, a time server, an administrator; time itself does not run backwards."""
    clock = FrozenClock(1000.0)

    clock.jump(-3600)

    assert (clock.now(), clock.monotonic()) == (-2600.0, 0.0)
    with pytest.raises(ValueError, match="jump"):
        clock.advance(-1)
