"""Fixed files that go back into a project while the process is killed."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.crash.killed_write_back import FILES

ROOT = Path(__file__).parents[2]
BELOW = ".signoff/runs/.write-back"
NEW_MOUNTS = ("unshare", "--map-root-user", "--mount")


def killed_everywhere(folder: Path, stride: int, *, mounted: bool) -> list[dict[str, Any]]:
    """Returns what each kill left, and what its resume made of it."""
    program = [sys.executable, "-m", "tests.crash.killed_write_back", str(folder), str(stride)]
    if mounted:
        program = [*NEW_MOUNTS, *program, "mounted"]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    results: list[dict[str, Any]] = json.loads(done.stdout)
    return results


@pytest.mark.parametrize(
    ("stride", "mounted"),
    [
        pytest.param(4, False, id="one mount"),
        pytest.param(1, False, id="one mount, every change", marks=pytest.mark.slow),
        pytest.param(1, True, id="own mount, every change", marks=pytest.mark.slow),
    ],
)
def test_a_write_back_that_is_killed_anywhere_is_completed_by_a_resume(
    tmp_path: Path, stride: int, mounted: bool
) -> None:
    """Someone's files must not be half written, and nothing of ours may stay among them."""
    if mounted and subprocess.run([*NEW_MOUNTS, "true"], check=False).returncode:
        pytest.skip("this machine allows no mounts of one's own")

    results = killed_everywhere(tmp_path, stride, mounted=mounted)

    assert len(results) > 20 // stride
    for number, result in enumerate(results):
        where = f"killed before change {number}"
        assert (result["resumed"], result["halves"]) == (0, []), where
        assert (result["left"], result["lost"], result["fixed"]) == ([], [], [*FILES]), where
    temporary = {name for each in results for name in each["temporary"]}
    beside = {name for name in temporary if not name.startswith(BELOW)}
    assert temporary > beside
    assert bool(beside) == mounted
