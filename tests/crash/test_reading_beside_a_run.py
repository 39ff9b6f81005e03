import subprocess
import sys
from pathlib import Path

from tests.run_stores import new_address, open_address
from tests.store_suite.journal_writer import JournalWriter

READ = "import sys; from tests.run_stores import open_address; open_address(sys.argv[1]).close()"
ROOT = Path(__file__).parents[2]


def test_a_process_that_only_reads_does_not_disturb_the_one_that_writes(tmp_path: Path) -> None:
    """Otherwise `signoff runs` would make a running workflow lose its later commits."""
    address = new_address(tmp_path)
    writer = open_address(address)
    writer.reopen().close()
    run = JournalWriter(writer)
    run.begin()

    subprocess.run([sys.executable, "-c", READ, address], cwd=ROOT, check=True)
    run.append(step="publish")

    reader = open_address(address)
    assert reader.row("run").step == "publish"
    reader.close()
    writer.close()
