import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from signoff.core import events as ev
from signoff.core.codec import decode
from signoff.core.fold import fold
from signoff.core.outcome import Status
from signoff.store.sqlite import SqliteStore
from signoff.testing import EffectLog
from tests.crash.concurrent_runs import PROCESSES, RUNS_PER_PROCESS, expected
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow

RUNS = PROCESSES * RUNS_PER_PROCESS


def test_fifty_processes_that_write_to_one_database_lose_nothing(tmp_path: Path) -> None:
    """A team shares one machine, and everyone starts a few runs at the same time."""
    path = tmp_path / "signoff.db"
    program = [sys.executable, "-m", "tests.crash.concurrent_runs", str(path)]

    ended = subprocess.run(
        program,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_SECONDS,
    )

    assert ended.returncode == 0, ended.stderr
    with closing(SqliteStore(path)) as store:
        rows = store.rows()
        assert len(rows) == RUNS
        assert {row.status for row in rows} == {Status.COMPLETED}
        assert {row.owner for row in rows} == {None}
        for row in rows:
            journal = store.journal(row.id)
            assert [commit.seq for commit in journal] == list(range(1, row.head + 1))
            events = (ev.from_json(e) for j in journal for e in decode(j.events, store.blob))
            assert fold(events).state == expected(row.name)
            assert sum(entry.calls for entry in store.ledger(row.id)) == 7
    keys = EffectLog(tmp_path).keys()
    assert len(keys) == len(set(keys)) == RUNS * 7
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert db.execute("SELECT count(*) FROM owners").fetchone() == (0,)
