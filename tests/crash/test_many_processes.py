import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from signoff.core import events as ev
from signoff.core.codec import decode
from signoff.core.fold import fold
from signoff.core.outcome import Status
from signoff.store.postgres.connection import read_address
from signoff.testing import EffectLog
from tests.crash.concurrent_runs import PROCESSES, RUNS_PER_PROCESS, expected
from tests.patience import PATIENCE_SECONDS
from tests.run_stores import new_address, open_address, server_stores

RUNS = PROCESSES * RUNS_PER_PROCESS


@pytest.mark.both_stores
def test_fifty_processes_that_write_to_one_database_lose_nothing(tmp_path: Path) -> None:
    """A team shares one machine, and everyone starts a few runs at the same time."""
    address = new_address(tmp_path)
    if server_stores() is not None:
        # They all connect at the same moment, and a busy machine starts few sessions a second.
        address += f"&connect_timeout={PATIENCE_SECONDS:.0f}"
    program = [sys.executable, "-m", "tests.crash.concurrent_runs", str(tmp_path), address]

    ended = subprocess.run(
        program,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_SECONDS,
    )

    assert ended.returncode == 0, ended.stderr
    with closing(open_address(address)) as store:
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
    assert _owners(address) == 0


def _owners(address: str) -> int:
    """Returns how many processes the store still knows; a file is checked, too."""
    if server_stores() is not None:
        server = read_address(address)
        with psycopg.connect(server.url) as db:
            return len(db.execute(f"SELECT id FROM {server.schema}.owners").fetchall())
    with closing(sqlite3.connect(address)) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return len(file.execute("SELECT id FROM owners").fetchall())
