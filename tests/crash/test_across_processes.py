import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from signoff.core.outcome import Status
from signoff.errors import UnknownName
from signoff.runtime.store_port import Owner
from signoff.store.sqlite import SqliteStore
from signoff.testing import EffectLog
from tests.patience import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "signoff.db"


def run_process(command: str, path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.crash.engine_command", command, str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )


@pytest.fixture
def driver(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is driving the run."""
    program = [sys.executable, "-m", "tests.crash.engine_command", "hang", str(path)]
    with subprocess.Popen(program, cwd=ROOT, stdout=subprocess.DEVNULL) as started:
        with closing(SqliteStore(path)) as store:
            wait_until(lambda: _has_run(store), "the start of the run")
        yield started
        started.kill()


def test_a_run_is_started_answered_and_resumed_in_three_processes(
    path: Path,
) -> None:
    """No user has to keep a terminal open while a run waits for an answer."""
    started = json.loads(run_process("start", path).stdout)
    answered = run_process("very good", path)
    resumed = json.loads(run_process("resume", path).stdout)

    assert started["status"] == "waiting"
    assert answered.returncode == 0, answered.stderr
    assert resumed == {
        "status": "completed",
        "state": {"draft": "a draft", "answer": "very good", "final": "a polished draft"},
    }
    assert len(EffectLog(path.parent).keys()) == 2


def test_resuming_a_run_of_another_process_is_refused_in_one_line(
    path: Path, driver: subprocess.Popen[bytes]
) -> None:
    """The message names the process that drives the run."""
    refused = run_process("join", path)

    assert refused.returncode == 1
    assert refused.stderr.startswith("RunBusy: ")
    assert f"process {driver.pid} " in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_a_run_can_be_cancelled_from_another_process(
    path: Path, driver: subprocess.Popen[bytes]
) -> None:
    """The process that drives the run gets the request, stops the run and exits normally."""
    cancelled = run_process("cancel", path)

    assert cancelled.stdout == "cancelled\n", cancelled.stderr
    assert driver.wait(PATIENCE_SECONDS) == 0
    with closing(SqliteStore(path)) as store:
        row = store.row("run")
        assert (row.status, row.owner, row.reason) == (
            Status.CANCELLED,
            None,
            "by another",
        )


def test_a_run_whose_process_was_killed_is_taken_over_at_once(
    path: Path, driver: subprocess.Popen[bytes]
) -> None:
    """Users do not wait for the lease of a process that no longer exists."""
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    with closing(sqlite3.connect(path)) as db, db:
        # The lease of the killed process has an hour left.
        db.execute("UPDATE owners SET until = until + 3600")

    cancelled = run_process("cancel", path)

    assert cancelled.stdout == "cancelled\n", cancelled.stderr


def test_a_process_that_was_suspended_cannot_write_to_a_run_it_has_lost(
    path: Path, driver: subprocess.Popen[bytes]
) -> None:
    """A laptop that was asleep must not write into the journal of the new owner."""
    driver.send_signal(signal.SIGSTOP)
    with closing(SqliteStore(path)) as store:
        row = store.row("run")
        fence = store.take(row.id, _other_owner(), lambda _owner: False)
        head = store.row("run").head

        driver.send_signal(signal.SIGCONT)
        driver.send_signal(signal.SIGINT)
        driver.wait(PATIENCE_SECONDS)

        after = store.row("run")
        assert (after.head, after.fence) == (head, fence)
        assert after.status is Status.RUNNING


def _other_owner() -> Owner:
    return Owner("other", "another-host", 1, "")


def _has_run(store: SqliteStore) -> bool:
    try:
        store.row("run")
    except UnknownName:
        return False
    return True
