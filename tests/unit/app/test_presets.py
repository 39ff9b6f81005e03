import json
import re
from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

import signoff.flows
from signoff.app.home import Home
from signoff.app.presets import init_project
from signoff.documents.source_file import SourceFile
from signoff.errors import UnknownName, WriteFailed
from signoff.flows.constraint_file import load_constraints
from signoff.flows.notation import NOTATION
from signoff.flows.reading import read_flow
from signoff.review.behaviors import IssueBehavior
from signoff.review.severity import Severity

NAMES = [preset.name for preset in NOTATION.presets]
SHIPPED = Path(signoff.flows.__file__).parent / "presets"


@pytest.fixture(params=NAMES)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    return init_project(tmp_path, {}, request.param).home


def written(home: Home) -> list[Path]:
    return [
        *home.flows.glob("*.yaml"),
        *home.constraints.glob("*.yaml"),
        home.root / "goal.yaml",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_is_a_flow_its_constraints_and_a_goal(name: str, tmp_path: Path) -> None:
    """Whoever asks for one wants to run something next."""
    begun = init_project(tmp_path, {}, name)

    home = begun.home
    assert (home.flows / f"{name}.yaml").is_file()
    assert (tmp_path / "goal.yaml").is_file()
    assert 3 <= len(list(home.constraints.glob("*.yaml"))) <= 5
    assert set(written(home)) <= set(begun.created)
    assert begun.run == (f".signoff/flows/{name}.yaml", "--goal", "goal.yaml")


def test_every_preset_that_is_shipped_can_be_asked_for() -> None:
    """A folder nobody can name, or a name without a folder, helps nobody."""
    assert sorted(each.name for each in SHIPPED.iterdir()) == sorted(NAMES)


def test_no_file_of_a_preset_stands_in_the_way_of_another() -> None:
    """A project may have documentation and code reviewed; the goal alone is shared."""
    names = [
        path.relative_to(SHIPPED / preset).as_posix()
        for preset in NAMES
        for path in (SHIPPED / preset / "home/constraints").iterdir()
    ]

    assert len(names) == len(set(names))


def test_what_is_there_already_is_left_alone_and_said(tmp_path: Path) -> None:
    """Somebody's own goal must survive a second preset."""
    goal = tmp_path / "goal.yaml"
    goal.write_text("goal: mine\n")

    begun = init_project(tmp_path, {}, "docs")

    assert goal.read_text() == "goal: mine\n"
    assert begun.kept == (goal,)
    assert goal not in begun.created


def test_asking_twice_changes_nothing_and_keeps_quiet(tmp_path: Path) -> None:
    """What nobody has changed is no news."""
    init_project(tmp_path, {}, "code")

    again = init_project(tmp_path, {}, "code")

    assert (again.created, again.kept) == ((), ())


def test_a_wrong_name_is_answered_with_the_right_ones_and_makes_nothing(tmp_path: Path) -> None:
    """A slip of the pen must not leave half a project behind."""
    with pytest.raises(UnknownName, match="docs"):
        init_project(tmp_path, {}, "doc")

    assert list(tmp_path.iterdir()) == []


def test_files_name_a_home_by_the_name_it_has(tmp_path: Path) -> None:
    """With SIGNOFF_HOME, paths to a folder that is not there would refuse the flow."""
    begun = init_project(tmp_path, {"SIGNOFF_HOME": str(tmp_path / "reviews")}, "docs")

    texts = [path.read_text() for path in written(begun.home)]
    assert not [text for text in texts if ".signoff/" in text]
    assert "- reviews/constraints/accuracy.yaml" in "\n".join(texts)
    assert begun.run[0] == "reviews/flows/docs.yaml"


def test_a_place_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    """A traceback would not say which file is in the way."""
    init_project(tmp_path, {})
    (tmp_path / ".signoff" / "flows").rmdir()
    (tmp_path / ".signoff" / "flows").symlink_to(tmp_path / "nowhere")

    with pytest.raises(WriteFailed, match=r"\.signoff"):
        init_project(tmp_path, {}, "docs")


def test_every_file_leads_an_editor_to_a_schema_that_agrees_with_it(home: Home) -> None:
    """A first line that points nowhere completes nothing; a wrong one underlines everything."""
    for path in written(home):
        text = path.read_text()
        named = re.match(r"# yaml-language-server: \$schema=(\S+)\n", text)

        assert named, path
        schema = json.loads((path.parent / named[1]).read_text())
        jsonschema.validate(YAML(typ="safe", pure=True).load(text), schema)


def test_schemas_follow_the_program(tmp_path: Path) -> None:
    """They are copies: an old one would call new keys wrong."""
    schema = init_project(tmp_path, {}).home.schemas / "flow.schema.json"
    fresh = schema.read_text()
    schema.write_text("{}")

    begun = init_project(tmp_path, {})

    assert schema.read_text() == fresh
    assert begun.created == ()


def test_a_preset_reads_without_a_single_remark(home: Home) -> None:
    """The first thing a beginner does is validate; a warning would be about our own files."""
    (flow,) = home.flows.glob("*.yaml")

    read = read_flow(SourceFile(flow), root=home.root, home=home.path, goal=home.root / "goal.yaml")

    assert read.warnings == ()
    assert read.goal is not None
    assert {each.id for each in read.constraints} == {p.stem for p in home.constraints.iterdir()}


def test_every_rule_shows_what_breaks_it_and_what_keeps_it(home: Home) -> None:
    """People write their own constraints after these."""
    constraints = load_constraints(home.constraints)

    for constraint in constraints:
        assert constraint.summary.strip(), constraint.id
        assert 2 <= len(constraint.rules) <= 4, constraint.id
        assert all(rule.violation and rule.compliant for rule in constraint.rules), constraint.id


def test_two_presets_live_side_by_side(tmp_path: Path) -> None:
    """The constraints of one are none of the other's business."""
    init_project(tmp_path, {}, "docs")
    home = init_project(tmp_path, {}, "code").home

    read = read_flow(SourceFile(home.flows / "docs.yaml"), root=tmp_path, home=home.path)

    assert read.warnings == ()
    assert len(read.constraints) == 4


def test_a_critical_hole_in_code_goes_to_a_person(tmp_path: Path) -> None:
    """No judge may dismiss it before somebody has seen it."""
    home = init_project(tmp_path, {}, "code").home
    read = read_flow(SourceFile(home.flows / "code.yaml"), root=tmp_path, home=home.path)

    (security,) = (each for each in read.constraints if each.id == "security")
    decided = read.config.behavior(security, Severity.CRITICAL)

    assert decided.behavior is IssueBehavior.ESCALATE
