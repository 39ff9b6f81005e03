"""A worker outside is killed while it writes; whoever takes over finds everything in its place."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from signoff.app.project import open_project
from signoff.cli import main
from signoff.core.requests import ItemState
from tests.acceptance.book import WORKFLOW
from tests.crash import worker
from tests.patience import PATIENCE_SECONDS

MOST_WRITES = 60
"""More than a whole run takes; the test ends with the first worker that is not killed."""


EVERY = 2
"""Every other write: a worker takes half a second to start."""


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a run in it that waits for its first piece of work."""
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "book"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "book.py").write_text(WORKFLOW)
    main(["run", "book.py:BOOK", "--pull", "--name", "one", "-i", "title=Emma", "--json"])
    return folder


def test_a_worker_killed_at_any_write_costs_no_work(
    started: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was handed in counts once, and is asked for once."""
    for at in range(1, MOST_WRITES, EVERY):
        # Killed and taken over in a copy, which the next one does not see.
        folder = tmp_path / f"at-{at}"
        shutil.copytree(started, folder)
        monkeypatch.chdir(folder)
        command = [sys.executable, worker.__file__, str(folder), str(at)]
        killed = subprocess.run(
            command, env=os.environ | {"PYTHONPATH": "."}, timeout=PATIENCE_SECONDS
        )
        if killed.returncode == 0:
            assert at > 10, "too few writes for this to say anything"
            return
        assert killed.returncode == -signal.SIGKILL

        found = worker.work(folder)

        assert (found.row.step, len(found.people)) == ("gate", 1), f"killed at write {at}"
        with open_project(folder, os.environ) as project:
            asked = project.store.items(
                "one",
                state=(ItemState.OPEN, ItemState.ANSWERED, ItemState.USED, ItemState.WITHDRAWN),
            )
        assert [item.state for item in asked] == ["used"] * 4 + ["open"], f"killed at write {at}"
        with closing(sqlite3.connect(folder / "book.db")) as db:
            words = [row[0] for row in db.execute("SELECT words FROM chapters ORDER BY id")]
        assert words == [200, 200, 0], f"killed at write {at}"
    raise AssertionError("the worker never got through")
