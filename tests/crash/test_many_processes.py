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
from tests.crash import crowd_member
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow

CROWD = 50


def test_fifty_processes_that_write_to_one_database_lose_nothing(tmp_path: Path) -> None:
    """A team on one machine, each with a few runs, all at the same moment."""
    path = tmp_path / "signoff.db"
    program = [sys.executable, "-m", "tests.crash.crowd_member", str(path)]
    root = Path(__file__).parents[2]

    crowd = [
        subprocess.Popen([*program, str(n)], cwd=root, stderr=subprocess.PIPE, text=True)
        for n in range(CROWD)
    ]
    said = [each.communicate(timeout=2 * PATIENCE_SECONDS)[1] for each in crowd]

    assert [each.returncode for each in crowd] == [0] * CROWD, "".join(said)
    with closing(SqliteStore(path)) as store:
        rows = store.rows()
        assert len(rows) == CROWD * crowd_member.RUNS
        assert {row.status for row in rows} == {Status.COMPLETED}
        assert {row.owner for row in rows} == {None}
        for row in rows:
            journal = store.journal(row.id)
            assert [each.seq for each in journal] == list(range(1, row.head + 1))
            events = (ev.from_json(e) for j in journal for e in decode(j.events, store.blob))
            assert fold(events).state == crowd_member.expected(row.name)
            assert sum(entry.calls for entry in store.ledger(row.id)) == 7
    keys = EffectLog(tmp_path).keys()
    assert len(keys) == len(set(keys)) == CROWD * crowd_member.RUNS * 7
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert db.execute("SELECT count(*) FROM owners").fetchone() == (0,)
