import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from signoff.app.demo import DemoRun, drive_run, prepare_project, prepare_run, versions
from signoff.app.show import show
from signoff.core.outcome import Status
from signoff.errors import UnknownName, UsageError
from signoff.remedies import PassOption
from signoff.testing import ScriptedAgent

FIRST = "Sipwell is a great app. It is free and needs no account."
SECOND = "Sipwell reminds you to drink water. It is free, needs no account and comes out on 1 May."


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DemoRun]:
    """A demo that is about to run; what it puts on the path is taken away again."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    begun = prepare_run(tmp_path / "demo", environment(tmp_path))
    with begun.project:
        yield begun


async def test_the_demo_goes_round_until_its_checks_have_nothing_to_say(begun: DemoRun) -> None:
    """The author mends what only an author can; the rest is done by exact edits."""
    author = ScriptedAgent([FIRST, SECOND])
    begun.project.agents = {"stand-in": author}

    result = await drive_run(begun, "stand-in", [])

    assert result.status is Status.COMPLETED
    read = versions(show(begun.project, begun.name))
    assert [each.text for each in read] == [FIRST, SECOND, SECOND.replace("Sip", "sip")]
    assert [len(each.findings) for each in read] == [3, 1, 0]
    assert [each.by_edits for each in read] == [False, False, True]
    assert author.prompts[1].strip().endswith("Say that it comes out on 1 May.")


def test_nothing_odd_is_said_about_it_where_no_agent_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its constraints name their checks, so whoever reviews by default has nothing to do."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "path", [*sys.path])

    begun = prepare_run(tmp_path / "demo", environment(tmp_path))
    begun.project.store.close()

    assert begun.plan.target.workflow.warnings == ()


async def test_an_agent_nobody_knows_is_refused_before_there_is_a_run(begun: DemoRun) -> None:
    """A slip of the pen leaves nothing behind that has to be cleaned up."""
    with pytest.raises(UnknownName, match="claude"):
        await drive_run(begun, "cluade", [])

    assert begun.project.store.rows() == []


async def test_another_demo_in_the_same_place_is_another_run(
    begun: DemoRun, tmp_path: Path
) -> None:
    """Nobody has to think of names, and the first run stays to be compared."""
    begun.project.agents = {"stand-in": ScriptedAgent([SECOND])}
    await drive_run(begun, "stand-in", [])

    again = prepare_run(tmp_path / "demo", environment(tmp_path))
    with again.project:
        assert (begun.name, again.name) == ("demo", "demo-2")


def test_files_that_were_changed_stay_changed(tmp_path: Path) -> None:
    """People are invited to change them and run it again."""
    prepare_project(tmp_path / "demo")
    (tmp_path / "demo" / "goal.yaml").write_text("goal: mine\n")

    prepare_project(tmp_path / "demo")

    assert (tmp_path / "demo" / "goal.yaml").read_text() == "goal: mine\n"


@pytest.mark.parametrize("is_file", [True, False])
def test_a_place_that_holds_something_else_is_left_alone(tmp_path: Path, is_file: bool) -> None:
    """The demo must not spread its files over somebody's project."""
    taken = tmp_path / "demo"
    inside = taken if is_file else taken / "notes.txt"
    inside.parent.mkdir(exist_ok=True)
    inside.write_text("mine")

    with pytest.raises(UsageError) as refused:
        prepare_project(taken)
    assert refused.value.remedies == (PassOption("folder", "DIR"),)

    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [inside.name]


def test_it_has_a_home_of_its_own_whatever_home_is_named(tmp_path: Path) -> None:
    """Somebody's real project must not get the demo's runs."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    begun = prepare_run(tmp_path / "demo", environment(tmp_path) | {"SIGNOFF_HOME": str(elsewhere)})
    begun.project.store.close()

    assert begun.project.home.root == tmp_path / "demo"
    assert list(elsewhere.iterdir()) == []


def environment(folder: Path) -> dict[str, str]:
    """A person without settings of their own."""
    return {"XDG_CONFIG_HOME": str(folder / "nobody")}
