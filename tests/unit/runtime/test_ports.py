import time

import pytest

from signoff.runtime.ports import SystemClock


def test_within_one_process_time_never_runs_backwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """A time server that sets the wall clock back must not make a step take minus an hour."""
    clock = SystemClock()
    before = clock.now()

    monkeypatch.setattr(time, "time", lambda: 0.0)

    assert clock.now() >= before
