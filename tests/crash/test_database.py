import signal
import subprocess
import sys
from pathlib import Path

import pytest

from signoff.guarded_db.staging import Committed
from tests.contract.library import Library, postgres_library, sqlite_library
from tests.crash.killed_database_step import KILLS, MARKER, do_step
from tests.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["sqlite", "postgres"])
def library(request: pytest.FixtureRequest, tmp_path: Path) -> Library:
    if request.param == "sqlite":
        return sqlite_library(tmp_path)
    return postgres_library(request.getfixturevalue("postgres"), tmp_path)


@pytest.mark.parametrize("moment", KILLS)
def test_a_step_killed_around_its_transaction_is_done_exactly_once(
    library: Library, moment: str
) -> None:
    """Work that is done by half or twice could not be repaired by hand."""
    run_until_killed(library, moment)

    # The server may need a moment to notice that the process is gone, and to end its transaction.
    with library.open(patience=PATIENCE_SECONDS) as db:
        done = db.done(MARKER)
        titles_before = sorted(library.titles())
        result = do_step(db)

    assert done is (moment == "after commit")
    assert titles_before == (["Dune", "Emma II", "Ulysses"] if done else ["Dune", "Emma"])
    assert result == Committed(changed=0 if done else 2, already=done)
    assert sorted(library.titles()) == ["Dune", "Emma II", "Ulysses"]


def run_until_killed(library: Library, moment: str) -> None:
    program = [sys.executable, "-m", "tests.crash.killed_database_step", library.address, moment]
    ended = subprocess.run(
        program, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
