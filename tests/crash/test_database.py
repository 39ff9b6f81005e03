import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from signoff.guarded_db.client import SafeDatabaseClient
from signoff.guarded_db.staging import Committed
from tests.crash.database_child import KILLS, MARKER, work
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
def test_a_step_killed_in_its_transaction_was_done_or_was_not_and_is_done_once(
    path: Path, moment: str
) -> None:
    """Half of a step's work, or all of it twice, is what nobody could mend by hand."""
    program = [sys.executable, "-m", "tests.crash.database_child", str(path), moment]
    ended = subprocess.run(
        program, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr

    with SafeDatabaseClient.open(path) as db:
        done = db.done(MARKER)
        seen = titles(path)
        redone = work(db)

    assert done is (moment == "after commit")
    assert seen == (["Dune", "Emma II", "Ulysses"] if done else ["Dune", "Emma"])
    assert redone == Committed(changed=0 if done else 2, already=done)
    assert titles(path) == ["Dune", "Emma II", "Ulysses"]
