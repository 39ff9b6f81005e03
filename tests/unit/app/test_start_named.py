"""Callers start workflows of the catalog, in any form that `run` takes, and nothing else."""

from pathlib import Path
from typing import Any

import pytest

from signoff.app.home import init_home
from signoff.app.start import StartRequest, plan_named, startable
from signoff.errors import NotAllowed, UnknownName, UsageError

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
    names = startable(folder, {}).by_name()

    assert names["hello"].description == "Greets someone."
    assert [*names][:2] == ["sea", "hello"], "those of the project come first"
    assert {"code-review", "review"} <= names.keys()


@pytest.mark.parametrize(
    "target",
    [
        "hello",
        ".signoff/flows/hello.py",
        "./.signoff/flows/hello.py:WORKFLOW",
        "../.signoff/flows/hello.py",
        "{folder}/.signoff/flows/hello.py",
    ],
)
def test_a_workflow_is_started_by_whatever_run_takes(folder: Path, target: str) -> None:
    """A path that works on the command line should not fail for a program."""
    cwd = folder / "sub" if target.startswith("..") else folder
    cwd.mkdir(exist_ok=True)

    asked = request(target.format(folder=folder), params={"who": "Ann"})
    planned = plan_named(cwd, {}, asked)

    assert planned.target.location == ".signoff/flows/hello.py:WORKFLOW"


def test_a_module_is_a_target_only_if_the_settings_name_it(folder: Path) -> None:
    """Any other module could be one that an agent has just written."""
    for package, code in (("team_flows", ""), ("other_flows", "raise SystemExit('imported')")):
        (folder / package).mkdir()
        (folder / package / "__init__.py").write_text(code)
        (folder / package / "hi.py").write_text(PYTHON.replace('"hello"', '"hi"'))
    (folder / ".signoff" / "config.yaml").write_text("version: 1\nworkflows: [team_flows]\n")
    found = startable(folder, {})

    assert found.find("team_flows.hi:WORKFLOW", folder).name == "hi"
    with pytest.raises(UnknownName):
        found.find("other_flows.hi:WORKFLOW", folder)


@pytest.mark.parametrize(
    "target",
    [
        "hello.py",
        "sea.yaml",
        "os:system",
        "review:files",
        "nope",
        "",
        "\0",
        "x" * 5000,
        "~nobody/x",
    ],
)
def test_nothing_outside_of_the_catalog_is_a_target(folder: Path, target: str) -> None:
    """An agent could write the file, and have its code run where signoff runs."""
    (folder / "hello.py").write_text("raise SystemExit('imported')")

    with pytest.raises(UnknownName, match="unknown workflow"):
        plan_named(folder, {}, request(target))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"review": {"flow": {}}}, "unknown option 'review'"),
        ({"goal": 3}, "must be a text"),
        ({"goal": "/etc/hostname"}, "must name a file of the project"),
        ({"goal": "../goal.yaml"}, "must name a file of the project"),
        ({"goal": "missing.yaml"}, "must name a file of the project"),
    ],
    ids=str,
)
def test_options_extend_nothing_and_stay_in_the_project(
    folder: Path, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        plan_named(folder, {}, request("sea", options=options))


def test_only_a_human_extends_what_a_run_may_do(folder: Path) -> None:
    """A flow's scripts run with the rights of signoff."""
    asked = request("sea", options={"allow_scripts": True})

    with pytest.raises(NotAllowed, match="a human can"):
        plan_named(folder, {}, asked)
    assert plan_named(folder, {}, asked, agent=False).target.workflow.name == "sea"


@pytest.mark.parametrize(("asked", "agent", "usd"), [(9, True, 2), (1, True, 1), (9, False, 9)])
def test_an_agent_cannot_raise_a_limit(folder: Path, asked: int, agent: bool, usd: int) -> None:
    """A coding agent that asks for more than the project allows would spend it."""
    settings = folder / ".signoff" / "config.yaml"
    settings.write_text("version: 1\nlimits: {usd: 2}\n")

    limits = {"usd": asked, "calls": 5}
    planned = plan_named(
        folder, {}, request("hello", params={"who": "A"}, limits=limits), agent=agent
    )

    assert planned.own_limits is not None
    assert planned.own_limits.to_json() == {"usd": usd, "calls": 5}
    assert planned.limits.to_json() == {"usd": usd, "calls": 5}
