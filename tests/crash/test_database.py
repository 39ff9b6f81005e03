import signal
import subprocess
import sys
from pathlib import Path

import pytest

from signoff.contracts.guarded_db.staging import Committed
from tests.contract.library import Library, postgres_library, sqlite_library
from tests.crash.killed_database_step import (
    GROUP_KILLS,
    KILLS,
    MARKER,
    do_group,
    do_step,
    group_marker,
)
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


@pytest.mark.parametrize("moment", GROUP_KILLS)
def test_steps_killed_around_the_commit_that_they_share_are_done_exactly_once(
    tmp_path: Path, moment: str
) -> None:
    """Either all of them are in the database, or none; its marker shows which."""
    library = sqlite_library(tmp_path)
    run_until_killed(library, moment)

    with library.open(patience=PATIENCE_SECONDS) as db:
        done = [db.done(group_marker(number)) for number in (1, 2, 3)]
        results = do_group(db, "")

    committed = moment == "after the commit of all"
    assert done == [committed] * 3
    assert results == [Committed(0, already=True) if committed else Committed(1)] * 3
    assert library.titles() == ["Dune", "Emma", "Book 1", "Book 2", "Book 3"]


def run_until_killed(library: Library, moment: str) -> None:
    program = [sys.executable, "-m", "tests.crash.killed_database_step", library.address, moment]
    ended = subprocess.run(
        program, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
