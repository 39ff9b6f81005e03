from pathlib import Path

from signoff.app.graph import Form, draw, find_workflow, graph_to_json
from signoff.app.project import Project
from signoff.app.validate import validate

GOOD = """
from signoff import Outcome, StepDef, Workflow
WORKFLOW = Workflow("good", StepDef("only", next={Outcome.OK: None}))
"""
BAD = """
from signoff import Outcome, StepDef, Workflow
WORKFLOW = Workflow("bad", StepDef("a", next={Outcome.OK: "z"}), StepDef("b"))
"""


def test_every_problem_of_a_definition_is_reported(project: Project) -> None:
    """Ten mistakes should not take ten tries."""
    (project.home.root / "bad.py").write_text(BAD)

    (checked,) = validate(["bad.py"], project.cwd, isolated(project))

    assert not checked.valid
    assert len(checked.problems) >= 3


def test_each_problem_of_a_file_names_the_line_of_its_step(project: Project) -> None:
    """A workflow of forty steps is long, and editors jump to `file:line`."""
    file = project.home.root / "places.py"
    file.write_text(
        "import signoff\n"
        "from signoff import Outcome, StepDef, Workflow\n"
        "WORKFLOW = Workflow(\n"
        "    'bad',\n"
        "    StepDef('a', next={Outcome.OK: 'z'}),\n"
        "    signoff.StepDef(\n"
        "        'b',\n"
        "    ),\n"
        ")\n"
    )

    (checked,) = validate(["places.py"], project.cwd, isolated(project))

    lines = {p.where.removeprefix(f"{file}:") for p in checked.problems}
    assert lines == {"5: step 'a'", "3: workflow", "6: step 'b'"}


def test_a_step_whose_line_cannot_be_known_names_the_workflows(project: Project) -> None:
    """Steps can be made in a loop; a wrong line would be worse than a rough one."""
    (project.home.root / "looped.py").write_text(
        "from signoff import Outcome, StepDef, Workflow\n"
        "steps = [StepDef(f'step-{n}', next={Outcome.OK: 'z'}) for n in range(2)]\n"
        "WORKFLOW = Workflow('bad', *steps)\n"
    )

    (checked,) = validate(["looped.py"], project.cwd, isolated(project))

    assert {p.where.partition("looped.py:")[2][:2] for p in checked.problems} == {"3:"}


def test_several_targets_are_checked_each_for_itself(project: Project) -> None:
    """A pipeline checks everything and shows all that is wrong."""
    (project.home.root / "good.py").write_text(GOOD)

    good, missing = validate(["good.py", "nope.py"], project.cwd, isolated(project))

    assert (good.valid, good.workflow) == (True, "good")
    assert "nope.py" in str(missing.problems[0])


def test_without_a_target_everything_that_has_a_name_is_checked(project: Project) -> None:
    """It is what a team runs before a commit."""
    (project.home.flows / "good.py").write_text(GOOD)
    (project.home.flows / "bad.py").write_text(BAD)

    checked = validate([], project.cwd, isolated(project))

    assert [each.workflow for each in checked if each.valid] == ["good"]
    assert any("bad.py" in str(p) for each in checked for p in each.problems)


def test_mistakes_in_the_settings_are_problems_too(project: Project) -> None:
    """No workflow runs with them."""
    project.home.config.write_text("limts: {}\nrolls: {}\n")

    (checked,) = validate([], project.cwd, isolated(project))

    assert len(checked.problems) == 2


def test_a_workflow_is_drawn_in_the_form_that_was_asked_for(
    project: Project, tmp_path: Path
) -> None:
    """Documents want Mermaid, terminals want text, programs want data."""
    (tmp_path / "good.py").write_text(GOOD)

    flow = find_workflow("good.py", tmp_path, isolated(project))

    assert draw(flow).startswith("good: 1 step")
    assert draw(flow, Form.MERMAID).startswith("flowchart")
    assert graph_to_json(flow)["workflow"] == "good"


def isolated(project: Project) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(project.cwd / "user")}
