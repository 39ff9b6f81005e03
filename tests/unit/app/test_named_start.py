"""Workflows are started by name only."""

from pathlib import Path
from typing import Any

import pytest

from signoff.app.home import init_home
from signoff.app.named_start import StartRequest, plan_named, workflow_names
from signoff.errors import InvalidParams, UnknownName, UsageError

PYTHON = '''
from signoff import Arg, Outcome, StepDef, Workflow
from typing import Annotated


def greet(ctx, who: Annotated[str, Arg("Whom to greet", required=True)]):
    """Greets."""
    return Outcome.OK, {"text": f"Hello, {who}."}


step = StepDef("greet", handler=greet, next={Outcome.OK: None})
WORKFLOW = Workflow("hello", step, description="Greets someone.")
'''
FLOW = """
name: sea
goal: Write.
constraints: {inline: {a: Be clear.}}
workflow: [{step: generate}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = init_home(tmp_path, {}).home
    (home.flows / "hello.py").write_text(PYTHON)
    (home.flows / "sea.yaml").write_text(FLOW.replace("\\\n", "\n"))
    return tmp_path


def request(workflow: str, **fields: Any) -> StartRequest:
    return StartRequest(workflow, **{"params": {}, "options": {}, "limits": {}, **fields})


def test_workflows_of_the_project_and_of_packages_have_names(folder: Path) -> None:
    names = workflow_names(folder, {})

    assert names["hello"] == "Greets someone."
    assert {"sea", "code-review"} <= names.keys()


def test_a_workflow_is_planned_with_its_parameters_and_limits(folder: Path) -> None:
    planned = plan_named(folder, {}, request("hello", params={"who": "Ann"}, limits={"usd": 2}))

    assert planned.params == {"who": "Ann"}
    assert planned.limits.usd == 2
    with pytest.raises(InvalidParams):
        plan_named(folder, {}, request("hello"))


@pytest.mark.parametrize(
    "target",
    ["hello.py", ".signoff/flows/hello.py", "sea.yaml", "os:system", "review:files", "nope", ""],
)
def test_only_a_name_is_a_target(folder: Path, target: str) -> None:
    """An agent could write the file, and have its code run where signoff runs."""
    (folder / "hello.py").write_text("raise SystemExit('imported')")

    with pytest.raises(UnknownName, match="unknown workflow"):
        plan_named(folder, {}, request(target))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"allow_scripts": "yes"}, "unknown option 'allow_scripts'"),
        ({"review": {"flow": {}}}, "unknown option 'review'"),
        ({"goal": 3}, "must be a text"),
        ({"goal": "/etc/hostname"}, "not a file of the project"),
        ({"goal": "../goal.yaml"}, "not a file of the project"),
        ({"goal": "missing.yaml"}, "not a file of the project"),
    ],
    ids=str,
)
def test_options_extend_nothing_and_stay_in_the_project(
    folder: Path, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        plan_named(folder, {}, request("sea", options=options))


def test_a_goal_of_the_project_is_used(folder: Path) -> None:
    (folder / "goal.yaml").write_text("goal: Write about the sea.\n")

    planned = plan_named(folder, {}, request("sea", options={"goal": "goal.yaml"}))

    assert "about the sea" in str(planned.target.workflow.source)


def test_a_review_takes_no_parameters(folder: Path) -> None:
    with pytest.raises(UsageError, match="options and no parameters"):
        plan_named(folder, {}, request("review", params={"paths": ["a.md"]}))
