"""A short soak: real workers and a real PostgreSQL server that are killed at random."""

import time
from pathlib import Path

import pytest

from benchmarks.soak.judgment import Kill, StartedCall, reasons
from benchmarks.soak.soak import Soak, SoakOptions
from tests.stubs.postgres import NotHereError

OPTIONS = SoakOptions(kills=10, seconds=60, seed=7, runs=6, longest_call_seconds=0.4)


EARLIER = StartedCall(10.0, "run-1", "draft#1", pid=1)
LATER = StartedCall(11.0, "run-1", "draft#1", pid=2)


@pytest.mark.parametrize(
    ("kill", "reasons_found"),
    [
        (Kill(10.5, 10.5, "worker", pid=1), {"worker"}),
        # It made the call between the two times.
        (Kill(9.9, 10.1, "worker", pid=1), {"worker"}),
        (Kill(10.5, 10.5, "worker", pid=2), set()),
        (Kill(8.0, 9.0, "postgres"), {"postgres"}),
        (Kill(10.5, 13.0, "postgres"), {"postgres"}),
        (Kill(5.0, 6.0, "postgres"), set()),
        (Kill(11.5, 12.0, "postgres"), set()),
        (Kill(9.0, 10.5, "temporal"), set()),
    ],
)
def test_a_repeated_call_is_explained_only_by_a_kill_that_could_cause_it(
    kill: Kill, reasons_found: set[str]
) -> None:
    """A soak that explained more would miss calls that are paid for twice."""
    assert reasons(EARLIER, LATER, [kill]) == reasons_found


@pytest.mark.slow
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
