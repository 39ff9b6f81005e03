import json
import subprocess
import sys
from pathlib import Path

from signoff.skills.qr.record_file import read_record, record

PROGRAM = Path(__file__).with_name("qr_writer.py")
WRITERS = 24


def test_results_that_are_recorded_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    """Reviewers work in parallel, and each result has cost money."""
    path = tmp_path / "qr-impl-code.json"
    names = [f"item-{number}" for number in range(WRITERS)]
    path.write_text(json.dumps({"items": [{"id": name, "check": name} for name in names]}))
    writers = [
        subprocess.Popen(
            [sys.executable, PROGRAM, "record", path, name],
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
    path = tmp_path / "qr-impl-code.json"
    path.write_text(json.dumps({"items": [{"id": "a"}, {"id": "b"}]}))
    record(path, "a", "FAIL", "kept")

    ended = subprocess.run(
        [sys.executable, PROGRAM, "kill", path], check=False, capture_output=True, text=True
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    found = json.loads(ended.stdout)
    # It was killed both before and after the moment that counts.
    assert found["old"] > 5
    assert found["new"] > 0
