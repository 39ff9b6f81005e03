import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

import signoff.review.flow
from signoff.app.settings.home import Home
from signoff.app.settings.presets import (
    DemoRun,
    drive_run,
    init_project,
    prepare_project,
    prepare_run,
)
from signoff.app.settings.settings import load_settings
from signoff.core.errors import UnknownName, UsageError
from signoff.core.remedies import PassOption
from signoff.core.severity import IssueBehavior, Severity
from signoff.documents.source_file import SourceFile
from signoff.review.flow.flow_notation import NOTATION
from signoff.review.flow.reading import read_flow
from signoff.review.flow.sections import load_constraints
from signoff.testing import ScriptedAgent

NAMES = [preset.name for preset in NOTATION.presets]
SHIPPED = Path(signoff.review.flow.__file__).parent / "presets"


@pytest.fixture(params=NAMES)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    return init_project(tmp_path, {}, request.param).home


def written(home: Home) -> list[Path]:
    return [
        *home.flows.glob("*.yaml"),
        *home.constraints.rglob("*.yaml"),
        *home.root.glob("*-goal.yaml"),
    ]


def test_files_use_the_actual_name_of_the_home(tmp_path: Path) -> None:
    """With SIGNOFF_HOME, paths to a missing folder would make the flow invalid."""
    result = init_project(tmp_path, {"SIGNOFF_HOME": str(tmp_path / "reviews")}, "docs")

    texts = [path.read_text() for path in written(result.home)]
    assert not [text for text in texts if ".signoff/" in text]
    assert "dir: reviews/constraints/docs" in "\n".join(texts)
    assert result.run[0] == "reviews/flows/docs.yaml"


def test_every_file_names_a_schema_that_it_matches(home: Home) -> None:
    """Editors use the schema for completion and to mark mistakes."""
    for path in written(home):
        text = path.read_text()
        named = re.match(r"# yaml-language-server: \$schema=(\S+)\n", text)

        assert named, path
        schema = json.loads((path.parent / named[1]).read_text())
        jsonschema.validate(YAML(typ="safe", pure=True).load(text), schema)


def test_schemas_are_updated_with_the_program(tmp_path: Path) -> None:
    """They are copies: an old one would mark new keys as wrong."""
    schema = init_project(tmp_path, {}).home.schemas / "flow.schema.json"
    fresh = schema.read_text()
    schema.write_text("{}")

    result = init_project(tmp_path, {})

    assert schema.read_text() == fresh
    assert result.created == ()


def test_every_constraint_has_examples_of_both_kinds(home: Home) -> None:
    """Users write their own constraints after these."""
    (folder,) = home.constraints.iterdir()

    for constraint in load_constraints(folder):
        assert constraint.summary.strip(), constraint.id
        least = 1 if constraint.agents else 2  # A program has one result.
        assert least <= len(constraint.rules) <= 4, constraint.id
        assert all(rule.violation and rule.compliant for rule in constraint.rules), constraint.id


@pytest.mark.parametrize("name", NAMES)
def test_presets_do_not_affect_each_other(name: str, tmp_path: Path) -> None:
    """Neither the constraints nor the goal of one must apply to another."""
    home = next(iter([init_project(tmp_path, {}, each).home for each in NAMES]))

    flow = SourceFile(home.flows / f"{name}.yaml")
    goal = tmp_path / f"{name}-goal.yaml"
    read = read_flow(flow, root=tmp_path, home=home.path, goal=goal)

    shipped = load_constraints(SHIPPED / name / "home" / "constraints" / name)
    assert read.warnings == ()
    assert read.constraints == tuple(shipped)
    assert read.goal is not None
    assert read.goal.goal == goal_of(SHIPPED / name / f"{name}-goal.yaml")


def goal_of(path: Path) -> str:
    goal: str = YAML(typ="safe", pure=True).load(path)["goal"]
    return goal


def test_the_code_preset_adds_the_tests_of_the_project_as_an_agent(tmp_path: Path) -> None:
    """Without it, the flow would name an agent that does not exist."""
    home = init_project(tmp_path, {}).home

    result = init_project(tmp_path, {}, "code")

    settings = load_settings(home, {})
    assert settings.agents["tests"].kind == "check"
    assert (result.changed, result.to_add) == ((home.config,), "")
    assert "# log_format: json" in home.config.read_text()
    assert init_project(tmp_path, {}, "code").changed == ()


@pytest.mark.parametrize("config", ["agents: {claude: {retries: 1}}\n", "agents: [broken\n"])
def test_settings_with_agents_are_left_alone_and_the_user_gets_what_to_add(
    config: str, tmp_path: Path
) -> None:
    """A second `agents:` would make the file invalid."""
    home = init_project(tmp_path, {}).home
    home.config.write_text(config)

    result = init_project(tmp_path, {}, "code")

    assert home.config.read_text() == config
    assert result.changed == ()
    assert "scope: project" in result.to_add


def test_a_critical_finding_in_code_goes_to_a_human(tmp_path: Path) -> None:
    """No judge may dismiss it before a human has seen it."""
    home = init_project(tmp_path, {}, "code").home
    read = read_flow(SourceFile(home.flows / "code.yaml"), root=tmp_path, home=home.path)

    (security,) = (each for each in read.constraints if each.id == "security")
    decided = read.config.behavior(security, Severity.CRITICAL)

    assert decided.behavior is IssueBehavior.ESCALATE


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
