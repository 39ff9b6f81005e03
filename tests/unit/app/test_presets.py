import json
import re
from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

import signoff.flows
from signoff.app.home import Home
from signoff.app.presets import init_project
from signoff.app.settings import load_settings
from signoff.core.severity import IssueBehavior, Severity
from signoff.documents.source_file import SourceFile
from signoff.flows.constraint_file import load_constraints
from signoff.flows.notation import NOTATION
from signoff.flows.reading import read_flow

NAMES = [preset.name for preset in NOTATION.presets]
SHIPPED = Path(signoff.flows.__file__).parent / "presets"


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
