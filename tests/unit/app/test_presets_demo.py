import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from signoff.app.presets import DemoRun, drive_run, prepare_project, prepare_run
from signoff.errors import UnknownName, UsageError
from signoff.remedies import PassOption
from signoff.testing import ScriptedAgent

SECOND = "Sipwell reminds you to drink water. It is free, needs no account and comes out on 1 May."


@pytest.fixture
def demo_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DemoRun]:
    """A demo that is ready to run; afterwards `sys.path` is restored."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    demo_run = prepare_run(tmp_path / "demo", environment(tmp_path))
    with demo_run.project:
        yield demo_run


def test_the_demo_has_no_warnings_without_installed_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its constraints name their checks, so no default reviewer is needed."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "path", [*sys.path])

    demo_run = prepare_run(tmp_path / "demo", environment(tmp_path))
    demo_run.project.store.close()

    assert demo_run.plan.target.workflow.warnings == ()


async def test_an_unknown_agent_is_rejected_before_there_is_a_run(demo_run: DemoRun) -> None:
    """A typo must leave nothing behind that has to be cleaned up."""
    with pytest.raises(UnknownName, match="claude"):
        await drive_run(demo_run, "cluade", [])

    assert demo_run.project.store.rows() == []


async def test_another_demo_in_the_same_folder_is_another_run(
    demo_run: DemoRun, tmp_path: Path
) -> None:
    """Users need not choose names, and can compare the runs."""
    demo_run.project.agents = {"stand-in": ScriptedAgent([SECOND])}
    await drive_run(demo_run, "stand-in", [])

    again = prepare_run(tmp_path / "demo", environment(tmp_path))
    with again.project:
        assert (demo_run.name, again.name) == ("demo", "demo-2")


def test_changed_files_are_not_overwritten(tmp_path: Path) -> None:
    """People are invited to change them and run it again."""
    prepare_project(tmp_path / "demo")
    (tmp_path / "demo" / "goal.yaml").write_text("goal: mine\n")

    prepare_project(tmp_path / "demo")

    assert (tmp_path / "demo" / "goal.yaml").read_text() == "goal: mine\n"


@pytest.mark.parametrize("is_file", [True, False])
def test_a_folder_with_other_files_is_left_alone(tmp_path: Path, is_file: bool) -> None:
    """The demo must not write its files into a user's project."""
    taken = tmp_path / "demo"
    inside = taken if is_file else taken / "notes.txt"
    inside.parent.mkdir(exist_ok=True)
    inside.write_text("mine")

    with pytest.raises(UsageError) as refused:
        prepare_project(taken)
    assert refused.value.remedies == (PassOption("folder", "DIR"),)

    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [inside.name]


def test_the_demo_has_its_own_home_even_if_another_is_named(tmp_path: Path) -> None:
    """A user's real project must not get the demo's runs."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    demo_run = prepare_run(
        tmp_path / "demo", environment(tmp_path) | {"SIGNOFF_HOME": str(elsewhere)}
    )
    demo_run.project.store.close()

    assert demo_run.project.home.root == tmp_path / "demo"
    assert list(elsewhere.iterdir()) == []


def environment(folder: Path) -> dict[str, str]:
    """The environment of a user without settings."""
    return {"XDG_CONFIG_HOME": str(folder / "user")}
