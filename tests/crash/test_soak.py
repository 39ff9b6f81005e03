"""A short soak: real workers and a real PostgreSQL server that are killed at random."""

import time
from pathlib import Path

import pytest

from benchmarks.soak.soak import Soak, SoakOptions
from tests.stubs.postgres import NotHereError

pytestmark = pytest.mark.slow

OPTIONS = SoakOptions(kills=10, seconds=60, seed=7, runs=6, longest_call_seconds=0.4)


def test_workers_and_a_server_that_are_killed_at_random_lose_and_repeat_nothing(
    tmp_path: Path,
) -> None:
    """`python -m benchmarks.soak` does the same for as long as you like."""
    try:
        with Soak(tmp_path, OPTIONS, print) as soak:
            report = soak.run()
            with soak.log.open("a") as log:
                log.write(f"{time.time()!r} start run-1 draft#1 2 1\n")
            forged = soak.judged()
    except NotHereError as error:
        pytest.skip(f"no PostgreSQL server: {error}")

    assert report.judgment.broken == []
    assert report.judgment.runs >= OPTIONS.runs
    assert report.kills["worker"] > 0
    assert report.kills["postgres"] > 0
    # It would have noticed: the reply of this call is in the journal.
    assert "finished, and called again" in forged.broken[0]
