import subprocess
import sys
import threading
from pathlib import Path

from signoff.app.run_records import metrics_text
from signoff.core.codec import encode
from signoff.core.events import to_json
from signoff.runtime.store_port import Store
from tests.run_stores import new_address, open_address
from tests.store_suite.journal_writer import JournalWriter
from tests.unit.telemetry.events import answers, asks, at, journal

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


def test_metrics_are_right_while_a_run_is_being_written(tmp_path: Path) -> None:
    """Every reading is a state that the run was in, and the last one is the last state."""
    address = new_address(tmp_path)
    writer, reader = open_address(address), open_address(address)
    run = JournalWriter(writer)
    run.begin(events=f"[{encode(to_json(journal()[0]), {})}]")
    calls = 60

    def work() -> None:
        for number in range(calls):
            pair = (at(number, asks(f"e#{number}")), at(number + 1, answers(f"e#{number}")))
            run.append(events=f"[{','.join(encode(to_json(event), {}) for event in pair)}]")

    thread = threading.Thread(target=work)
    thread.start()
    counts = []
    while thread.is_alive():
        counts.append(_calls(reader))
    thread.join()

    assert counts == sorted(counts)
    assert _calls(reader) == calls
    reader.close()
    writer.close()


def _calls(store: Store) -> int:
    """Returns how many calls the metrics report."""
    name = 'signoff_effects_total{agent="claude",kind="ask",result="ok"} '
    lines = metrics_text(store, 0.0).splitlines()
    return next((int(float(line.removeprefix(name))) for line in lines if line.startswith(name)), 0)
