import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Absolute paths that exist only on one developer's machine.
MACHINE_PATH = re.compile(r"(?<![\w.~*/-])/(?:work|root|home/\w+|Users/\w+|tmp/tmp[.\w]+)/")

INDEX_ADDRESS = re.compile(
    r"://|index-url|find-links|trusted-host|@ file|pythonhosted|pypi\." + "org", re.IGNORECASE
)
SET_UP_FILES = ("constraints/*", "Makefile", "pyproject.toml", ".ci/*")


@pytest.fixture(scope="module")
def tracked() -> list[str]:
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("needs a git checkout: an unpacked archive has no list of tracked files")
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_tracked_file_contains_a_path_of_one_machine(tracked: list[str]) -> None:
    """Such a path only works for its author."""
    traces = [trace for name in tracked for trace in lines_with(MACHINE_PATH, name)]

    assert traces == []


def test_set_up_files_leave_the_choice_of_package_index_to_the_user(tracked: list[str]) -> None:
    """An address in them would break the setup for users of a mirror."""
    set_up = [name for name in tracked if any(Path(name).match(glob) for glob in SET_UP_FILES)]

    traces = [trace for name in set_up for trace in lines_with(INDEX_ADDRESS, name)]

    assert "constraints/dev.txt" in set_up
    assert traces == []


def test_every_constraint_is_an_exact_version(tracked: list[str]) -> None:
    """A range would let two people on the same commit test against different libraries."""
    files = [name for name in tracked if name.startswith("constraints/")]

    loose = [
        f"{name}: {line}"
        for name in files
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines()
        if not re.fullmatch(r"[\w.-]+==[\w.]+( ; .+)?", line)
    ]

    assert loose == []


def test_a_file_that_fixes_one_machines_choices_is_not_tracked(tracked: list[str]) -> None:
    """A lock file carries index addresses; a version file overrides the user's own Python."""
    assert [path for path in tracked if Path(path).name in ("uv.lock", ".python-version")] == []


def test_a_machine_path_is_recognized_and_others_are_left_alone() -> None:
    """A pattern that matches nothing, or everything, would be no check."""
    of_one_machine = ["see |root|notes", 'open("|work|a")', "(|home|ann|x)", "in |tmp|tmp.Ab1|x"]
    of_any = ["src/work/a", "GET https://host/root/", "~/work/", "/workflow/"]

    lines = [*(line.replace("|", "/") for line in of_one_machine), *of_any]

    assert [line for line in lines if MACHINE_PATH.search(line)] == lines[: len(of_one_machine)]


def lines_with(pattern: re.Pattern[str], name: str) -> list[str]:
    text = (ROOT / name).read_bytes().decode("utf-8", errors="replace")
    return [
        f"{name}:{number}: {line.strip()[:120]}"
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]
