import time

import pytest

from signoff.runtime.ports import SystemClock


def test_it_tells_the_time() -> None:
    """Deadlines and logs are read by people."""
    assert SystemClock().now() == pytest.approx(time.time(), abs=5)


def test_within_one_process_time_never_runs_backwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """A time server that sets the wall clock back must not make a step take minus an hour."""
    clock = SystemClock()
    before = clock.now()

    monkeypatch.setattr(time, "time", lambda: 0.0)

    assert clock.now() >= before


async def test_it_waits() -> None:
    """A back-off that returns at once is none."""
    clock = SystemClock()
    before = clock.monotonic()

    await clock.sleep(0.01)

    assert clock.monotonic() - before >= 0.009
