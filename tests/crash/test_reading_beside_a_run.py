import subprocess
import sys
from pathlib import Path

from signoff.store.sqlite import SqliteStore
from signoff.testing.store_suite.journal_writer import JournalWriter

READ = "import sys; from signoff.store.sqlite import SqliteStore; SqliteStore(sys.argv[1]).close()"


def test_a_process_that_only_reads_does_not_disturb_the_one_that_writes(tmp_path: Path) -> None:
    """Otherwise `signoff runs` would make a running workflow lose its later commits."""
    path = tmp_path / "signoff.db"
    writer = SqliteStore(path)
    writer.reopen().close()
    run = JournalWriter(writer)
    run.begin()

    subprocess.run([sys.executable, "-c", READ, path], check=True)
    run.append(step="publish")

    reader = SqliteStore(path)
    assert reader.row("run").step == "publish"
    reader.close()
    writer.close()
