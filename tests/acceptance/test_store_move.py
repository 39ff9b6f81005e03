"""`signoff store move` prints what is different afterwards."""

import json

import pytest

from signoff.app.runs.runs import public_address
from tests.acceptance.cli_project import CliProject
from tests.acceptance.workflows import SIGNS


@pytest.fixture
def waiting(project: CliProject, monkeypatch: pytest.MonkeyPatch) -> CliProject:
    """Two runs that wait, with the requests #1 and #2."""
    project.enter(monkeypatch)
    project.write("flow.py", SIGNS)
    for name in ("first", "second"):
        assert project.call("run", "flow.py", "--name", name, "--no-input").code == 10
    return project


def test_the_new_numbers_of_requests_and_the_old_store_are_named(waiting: CliProject) -> None:
    """A user who types the old number, or looks into the old store, finds nothing."""
    one = waiting.call("store", "move", "second", "--to", "other.db")
    rest = json.loads(waiting.call("store", "move", "--all", "--to", "other.db", "--json").out)
    in_variable = waiting.environment.get("SIGNOFF_DATABASE", "")
    here = public_address(in_variable or "signoff.db")
    origin = "SIGNOFF_DATABASE still names" if in_variable else "the settings still name"

    assert "  pending there: #1\n" in one.out
    assert f"{origin} {here};" in one.out
    assert "set database: " in one.out
    (moved,) = rest["moved"]
    assert (moved["run"], moved["pending"]) == ("first", [2])
    assert rest["running"] == []
    assert rest["moved_to"].endswith("/other.db")
    assert rest["database"] == here


def test_runs_that_are_running_are_listed_as_left_out(waiting: CliProject) -> None:
    """`--all` would otherwise look as if it had moved everything."""
    from signoff.app.settings.project import open_project
    from signoff.runtime.owner import this_process

    with open_project(waiting.folder, waiting.environment) as project:
        row, owner = project.store.row("first"), this_process()
        project.store.take(row.id, owner, lambda _owner: True, lease_seconds=600)
        moved = waiting.call("store", "move", "--all", "--to", "other.db")
        project.store.leave(owner)

    assert "moved second: " in moved.out
    assert "not moved, because they are running: first\n" in moved.out
