import subprocess
import sys
from pathlib import Path

from signoff.store.sqlite import SqliteStore
from signoff.testing.store_suite.journal_writer import JournalWriter

LOOK = "import sys; from signoff.store.sqlite import SqliteStore; SqliteStore(sys.argv[1]).close()"


def test_a_look_from_another_process_takes_nothing_from_the_one_at_work(tmp_path: Path) -> None:
    """`signoff runs` beside a running workflow would cut off everything it commits afterwards."""
    path = tmp_path / "signoff.db"
    working = SqliteStore(path)
    working.reopen().close()
    run = JournalWriter(working)
    run.begin()

    subprocess.run([sys.executable, "-c", LOOK, path], check=True)
    run.append(step="publish")

    later = SqliteStore(path)
    assert later.row("run").step == "publish"
    later.close()
    working.close()
