import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from signoff.runtime.owner import make_scratch_folder, remove_leftovers, scratch_folder

KILLED = """
import os, signal
from signoff.runtime.owner import make_scratch_folder
(make_scratch_folder() / "prompt.md").write_text("private")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gives this process, and those it starts, a folder for temporary files of its own."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    remove_leftovers.cache_clear()
    return tmp_path


def test_the_folder_of_a_killed_process_is_removed_by_the_next_one(temporary: Path) -> None:
    """Prompts and drafts would pile up in the temporary folder."""
    subprocess.run([sys.executable, "-c", KILLED], check=False)
    (left,) = temporary.iterdir()

    with scratch_folder() as ours:
        assert list(temporary.iterdir()) == [ours]

    assert (left / "prompt.md").exists() is False
    assert list(temporary.iterdir()) == []


def test_folders_of_living_processes_and_of_others_are_left_alone(temporary: Path) -> None:
    """Another run is at work in there; or it is no folder of ours at all."""
    alive = make_scratch_folder()
    elsewhere = alive.with_name("signoff-00000000-1-1-abc")
    foreign = alive.with_name("signoff-notes")
    link = alive.with_name(f"{alive.name.replace(str(os.getpid()), '999999999')}-link")
    for folder in (elsewhere, foreign):
        folder.mkdir()
    link.symlink_to(foreign)
    remove_leftovers.cache_clear()

    remove_leftovers()

    assert set(temporary.iterdir()) == {alive, elsewhere, foreign, link}


def test_a_scratch_folder_is_for_its_owner_alone() -> None:
    """Prompts are private, and every user can read the folder for temporary files."""
    with scratch_folder() as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
