import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from signoff.guarded_db.client import SafeDatabaseClient
from signoff.guarded_db.staging import Committed
from tests.crash.killed_database_step import KILLS, MARKER, do_step
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "library.db")) as db:
        db.executescript(
            "CREATE TABLE books (id INTEGER PRIMARY KEY, title TEXT);"
            "INSERT INTO books (title) VALUES ('Dune'), ('Emma');"
        )
    return tmp_path / "library.db"


def titles(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as db:
        return [title for (title,) in db.execute("SELECT title FROM books ORDER BY id")]


@pytest.mark.parametrize("moment", KILLS)
def test_a_step_killed_around_its_transaction_is_done_exactly_once(path: Path, moment: str) -> None:
    """Work that is done by half or twice could not be repaired by hand."""
    program = [sys.executable, "-m", "tests.crash.killed_database_step", str(path), moment]
    ended = subprocess.run(
        program, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr

    with SafeDatabaseClient.open(path) as db:
        done = db.done(MARKER)
        titles_before = titles(path)
        result = do_step(db)

    assert done is (moment == "after commit")
    assert titles_before == (["Dune", "Emma II", "Ulysses"] if done else ["Dune", "Emma"])
    assert result == Committed(changed=0 if done else 2, already=done)
    assert titles(path) == ["Dune", "Emma II", "Ulysses"]
