import json
import signal
import subprocess
import sys
from pathlib import Path

from signoff.skills.qr import read_record

PROGRAM = Path(__file__).with_name("qr_writer.py")
WRITERS = 24


def test_results_that_are_recorded_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    """Reviewers work in parallel, and each result has cost money."""
    path = tmp_path / "qr-impl-code.json"
    names = [f"item-{number}" for number in range(WRITERS)]
    path.write_text(json.dumps({"items": [{"id": name, "check": name} for name in names]}))
    writers = [
        subprocess.Popen(
            [sys.executable, PROGRAM, path, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"

    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    codes = [writer.communicate() and writer.returncode for writer in writers]

    assert codes == [0] * WRITERS
    items = read_record(path).items
    assert [(item.id, item.check, item.finding) for item in items] == [
        (name, name, f"finding of {name}") for name in names
    ]


def test_a_record_is_written_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    """A reviewer may be killed at any point: no earlier result is lost, and the next can record."""
    program = Path(__file__).with_name("qr_killed_writer.py")
    found, code = [], -1
    for calls in range(100):
        # What a killed process left behind would make the next one take more calls.
        path = tmp_path / str(calls) / "qr-impl-code.json"
        path.parent.mkdir()
        path.write_text(json.dumps({"items": [{"id": "a"}, {"id": "b"}]}))
        ended = subprocess.run([sys.executable, program, path, "b", str(calls)], check=False)
        a, b = read_record(path).items
        assert (a.status, a.finding) == ("FAIL", "kept")
        assert (b.status, b.finding) in {("TODO", None), ("FAIL", "half of it")}
        found.append(b.finding)
        code = ended.returncode
        if code == 0:
            break
        assert code == -signal.SIGKILL

    # It was killed both before and after the moment that counts, and survived in the end.
    assert code == 0
    assert found.count(None) > 5
    assert found.count("half of it") > 1
