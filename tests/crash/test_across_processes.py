import json
import signal
import sqlite3
import subprocess
import sys
import time
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


def process(command: str, path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.crash.relay", command, str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )


@pytest.fixture
def driving(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is in the middle of the run."""
    program = [sys.executable, "-m", "tests.crash.relay", "hang", str(path)]
    with subprocess.Popen(program, cwd=ROOT, stdout=subprocess.DEVNULL) as started:
        with closing(SqliteStore(path)) as store:
            wait_until(lambda: _has_run(store), "the start of the run")
        yield started
        started.kill()


def test_a_run_is_started_in_one_process_answered_from_another_and_resumed_in_a_third(
    path: Path,
) -> None:
    """Nobody has to keep a terminal open for a week."""
    started = json.loads(process("start", path).stdout)
    answered = process("very good", path)
    resumed = json.loads(process("resume", path).stdout)

    assert started["status"] == "waiting"
    assert answered.returncode == 0, answered.stderr
    assert resumed == {
        "status": "completed",
        "state": {"draft": "a draft", "said": "very good", "final": "a polished draft"},
    }
    assert len(EffectLog(path.parent).keys()) == 2


def test_a_run_that_another_process_drives_is_refused_in_one_line(
    path: Path, driving: subprocess.Popen[bytes]
) -> None:
    """And says which process drives it."""
    refused = process("join", path)

    assert refused.returncode == 1
    assert refused.stderr.startswith("RunBusy: ")
    assert f"process {driving.pid} " in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_a_run_that_another_process_drives_is_cancelled_from_here(
    path: Path, driving: subprocess.Popen[bytes]
) -> None:
    """The other process is told, stops, and ends in order."""
    cancelled = process("cancel", path)

    assert cancelled.stdout == "cancelled\n", cancelled.stderr
    assert driving.wait(PATIENCE_SECONDS) == 0
    with closing(SqliteStore(path)) as store:
        row = store.row("run")
        assert (row.status, row.owner, row.reason) == (Status.CANCELLED, None, "from elsewhere")


def test_a_run_whose_process_was_killed_is_taken_over_at_once(
    path: Path, driving: subprocess.Popen[bytes]
) -> None:
    """Nobody waits for a lease of a process that is known to be gone."""
    driving.send_signal(signal.SIGKILL)
    driving.wait()
    with closing(sqlite3.connect(path)) as db, db:
        # However long that process had it leased.
        db.execute("UPDATE owners SET until = until + 3600")

    cancelled = process("cancel", path)

    assert cancelled.stdout == "cancelled\n", cancelled.stderr


def test_a_process_that_is_stopped_and_goes_on_finds_its_run_taken(
    path: Path, driving: subprocess.Popen[bytes]
) -> None:
    """Asleep for an hour, it must not write into what happened meanwhile."""
    driving.send_signal(signal.SIGSTOP)
    with closing(SqliteStore(path)) as store:
        row = store.row("run")
        fence = store.take(row.id, _somebody(), time.time(), lambda _owner: False)
        head = store.row("run").head

        driving.send_signal(signal.SIGCONT)
        driving.send_signal(signal.SIGINT)
        driving.wait(PATIENCE_SECONDS)

        after = store.row("run")
        assert (after.head, after.fence) == (head, fence)
        assert after.status is Status.RUNNING


def _somebody() -> Owner:
    return Owner("somebody", "elsewhere", 1, "")


def _has_run(store: SqliteStore) -> bool:
    try:
        store.row("run")
    except UnknownName:
        return False
    return True
