import subprocess
import sys
from pathlib import Path

from signoff.store.sqlite import SqliteStore
from signoff.testing.store_suite.scribe import Scribe

LOOK = "import sys; from signoff.store.sqlite import SqliteStore; SqliteStore(sys.argv[1]).close()"


def test_a_look_from_another_process_takes_nothing_from_the_one_at_work(tmp_path: Path) -> None:
    """`signoff runs` beside a running workflow would cut off everything it commits afterwards."""
    path = tmp_path / "signoff.db"
    working = SqliteStore(path)
    working.reopen().close()
    run = Scribe(working)
    run.begin()

    subprocess.run([sys.executable, "-c", LOOK, path], check=True)
    run.go_on(step="publish")

    later = SqliteStore(path)
    assert later.row("run").step == "publish"
    later.close()
    working.close()
