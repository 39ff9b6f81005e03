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

    (checked,) = validate(["bad.py"], cwd=project.cwd, home=project.home, settings=project.settings)

    assert not checked.valid
    assert len(checked.problems) >= 3


def test_several_targets_are_checked_each_for_itself(project: Project) -> None:
    """A pipeline checks everything and shows all that is wrong."""
    (project.home.root / "good.py").write_text(GOOD)

    good, missing = validate(
        ["good.py", "nope.py"], cwd=project.cwd, home=project.home, settings=project.settings
    )

    assert (good.valid, good.workflow) == (True, "good")
    assert "nope.py" in str(missing.problems[0])


def test_without_a_target_everything_that_has_a_name_is_checked(project: Project) -> None:
    """It is what a team runs before a commit."""
    (project.home.flows / "good.py").write_text(GOOD)
    (project.home.flows / "bad.py").write_text(BAD)

    checked = validate([], cwd=project.cwd, home=project.home, settings=project.settings)

    assert [each.workflow for each in checked if each.valid] == ["good"]
    assert any("bad.py" in str(p) for each in checked for p in each.problems)


def test_a_workflow_is_drawn_in_the_form_that_was_asked_for(
    project: Project, tmp_path: Path
) -> None:
    """Documents want Mermaid, terminals want text, programs want data."""
    (tmp_path / "good.py").write_text(GOOD)

    flow = find_workflow("good.py", cwd=tmp_path, home=project.home, settings=project.settings)

    assert draw(flow).startswith("good: 1 step")
    assert draw(flow, Form.MERMAID).startswith("flowchart")
    assert graph_to_json(flow)["workflow"] == "good"
