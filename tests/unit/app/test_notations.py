"""Tests of notations: what they are told, and that a run's workflow is built again the same."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from signoff.app.graph import find_workflow
from signoff.app.home import Home
from signoff.app.notations import Told, as_said, tell
from signoff.app.project import Project
from signoff.app.settings import AgentSettings, Settings
from signoff.app.start import plan, start
from signoff.app.targets import resolve
from signoff.app.validate import validate
from signoff.errors import InvalidWorkflow, UsageError

TOY = """
from signoff import Outcome, StepDef, Workflow
from signoff.errors import InvalidWorkflow, Problem

def work(ctx):
    return Outcome.OK, {}

def read(path, *, root, home, options, agents):
    goal = options.get("goal")
    if goal is None and not options.get("check_only"):
        raise InvalidWorkflow(path.name, [Problem(str(path), "has no goal")])
    text = (root / goal).read_text() if goal else ""
    source = {"goal": text, "given": dict(options)}
    return Workflow(
        path.stem,
        StepDef("only", handler=work, next={Outcome.OK: None}),
        notation="toy",
        source=source,
        remarks=[f"{path.name} is a toy"],
    )
"""


@pytest.fixture(autouse=True)
def toy(tmp_path: Path) -> Iterator[None]:
    """A package that brings a notation for `.toml` files, as installed packages do."""
    path, modules = list(sys.path), set(sys.modules)
    place = tmp_path / "site"
    about = place / "toy_notation-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-notation\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[signoff.notations]\n.toml = toy_notation:read\n")
    (place / "toy_notation.py").write_text(TOY)
    sys.path.insert(0, str(place))
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if not name.startswith("signoff."):
            del sys.modules[name]


@pytest.fixture
def home(project: Project) -> Home:
    (project.home.root / "flow.toml").write_text("")
    (project.home.root / "goal.md").write_text("Write a poem.")
    return project.home


def isolated(home: Home) -> dict[str, str]:
    return {"SIGNOFF_HOME": str(home.path), "XDG_CONFIG_HOME": str(home.root / "nowhere")}


def executable(place: Path) -> None:
    place.parent.mkdir(exist_ok=True)
    place.write_text("#!/bin/sh\n")
    place.chmod(0o755)


def test_a_notation_is_told_what_the_command_line_said(home: Home) -> None:
    """A goal that does not reach the flow would be a run about nothing."""
    planned = plan(
        home.root, isolated(home), "flow.toml", {}, said={"goal": "goal.md", "allow_scripts": True}
    )

    source = planned.target.workflow.source
    assert source["goal"] == "Write a poem."
    assert source["given"]["allow_scripts"] is True
    assert planned.target.place == "flow.toml"


def test_a_goal_is_found_again_from_the_projects_root(home: Home) -> None:
    """A run started in a sub-folder is resumed from somewhere else."""
    (home.root / "deep").mkdir()

    said = as_said({"goal": "../goal.md"}, home.root / "deep", home)

    assert said == {"goal": "goal.md"}


def test_a_goal_outside_the_project_keeps_its_whole_path(home: Home) -> None:
    """There is no other way to find it again."""
    said = as_said({"goal": "/elsewhere/goal.md"}, home.root, home)

    assert said == {"goal": str(Path("/elsewhere/goal.md").resolve())}


@pytest.mark.parametrize("target", ["flow.py", "some.module:NAME"])
def test_a_python_workflow_takes_no_goal(home: Home, target: str) -> None:
    """An option that is silently ignored is worse than none."""
    (home.root / "flow.py").write_text("raise AssertionError('never imported')")

    with pytest.raises(UsageError, match=r"--goal and --allow-scripts: .* in Python"):
        resolve(target, cwd=home.root, home=home, told=Told({"goal": "g", "allow_scripts": True}))


async def test_a_runs_workflow_is_built_again_from_what_was_given(
    project: Project, home: Home
) -> None:
    """Or a resume, days later, would be refused for a definition that has changed."""
    planned = plan(home.root, isolated(home), "flow.toml", {}, said={"goal": "goal.md"})
    await start(project, planned.target, {}, name="one")

    again = project.find_again(project.run("one"))

    assert again.workflow.digest == planned.target.workflow.digest


async def test_a_moved_flow_is_given_what_its_run_was(project: Project, home: Home) -> None:
    """`resume --target` names another place for the flow, not another goal."""
    planned = plan(home.root, isolated(home), "flow.toml", {}, said={"goal": "goal.md"})
    await start(project, planned.target, {}, name="one")
    (home.root / "moved.toml").write_text("")

    again = project.find("moved.toml", project.run("one"))

    assert again.workflow.source["goal"] == "Write a poem."


async def test_who_is_asked_by_default_is_settled_when_a_run_starts(
    project: Project, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Installing another agent meanwhile must not change a run that is half done."""
    monkeypatch.setenv("PATH", str(home.root / "nothing"))
    planned = plan(home.root, isolated(home), "flow.toml", {}, said={"goal": "goal.md"})
    await start(project, planned.target, {}, name="one")
    executable(home.root / "bin" / "claude")
    monkeypatch.setenv("PATH", str(home.root / "bin"))

    again = project.find_again(project.run("one"))
    anew = tell(project.settings)

    assert again.workflow.digest == planned.target.workflow.digest
    assert again.workflow.source["given"]["default_agent"] == "auto"
    assert anew.options["default_agent"] == "claude"


def test_claude_is_asked_by_default_where_it_is_and_whoever_there_is_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flow that names nobody should work with what people have."""
    monkeypatch.setenv("PATH", str(tmp_path))
    executable(tmp_path / "codex")

    bare = tell(Settings())
    configured = tell(Settings(agents={"claude": AgentSettings("command")}))

    assert (bare.options["default_agent"], bare.options["found"]) == ("auto", ["codex"])
    assert configured.options["default_agent"] == "claude"
    assert configured.options["found"] == ["claude", "codex"]


def test_a_notation_is_told_who_can_be_asked(home: Home) -> None:
    """Whether critics share a family, or can edit, depends on what stands behind a name."""
    settings = Settings(
        agents={"writer": AgentSettings("ollama", options={"model": "qwen3"})},
        roles={"critic": "writer", "judge": "codex"},
    )

    agents = tell(settings).agents

    assert agents == {
        "writer": {"kind": "ollama", "model": "qwen3"},
        "critic": {"kind": "ollama", "model": "qwen3"},
        "judge": {"kind": "codex"},
    }


def test_a_program_that_came_with_a_package_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`signoff[claude]` brings the program without putting it on PATH."""
    package = tmp_path / "claude_agent_sdk/_bundled"
    package.mkdir(parents=True)
    (tmp_path / "claude_agent_sdk/__init__.py").touch()
    (package / "claude").write_text("#!/bin/sh\n")
    (package / "claude").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.syspath_prepend(tmp_path)

    options = tell(Settings()).options

    assert (options["default_agent"], options["found"]) == ("claude", ["claude"])


def test_a_flow_without_a_goal_can_be_checked_drawn_and_found_but_not_run(home: Home) -> None:
    """Its author checks it long before there is something to make."""
    (home.flows / "named.toml").write_text("")

    (checked,) = validate(["flow.toml"], home.root, isolated(home))
    (found,) = validate([], home.root, isolated(home))
    drawn = find_workflow("named", home.root, isolated(home))

    assert checked.valid
    assert (found.valid, found.workflow) == (True, "named")
    assert drawn.name == "named"
    with pytest.raises(InvalidWorkflow, match="has no goal"):
        plan(home.root, isolated(home), "named", {})


def test_a_flow_found_by_name_is_given_the_goal(home: Home) -> None:
    """`signoff run review --goal goal.md` is what a team types every day."""
    (home.flows / "named.toml").write_text("")

    planned = plan(home.root, isolated(home), "named", {}, said={"goal": "goal.md"})

    assert planned.target.workflow.source["goal"] == "Write a poem."
    assert "check_only" not in planned.target.workflow.source["given"]


def test_remarks_are_told_and_are_no_problems(home: Home) -> None:
    """A glob that matches nothing is worth a word, and no reason to refuse."""
    (checked,) = validate(["flow.toml"], home.root, isolated(home))

    assert checked.valid
    assert checked.remarks == ("flow.toml is a toy",)


def test_remarks_are_no_part_of_what_is_frozen(home: Home) -> None:
    """Better wording in a later version must not keep runs from going on."""
    workflow = resolve("flow.toml", cwd=home.root, home=home, told=Told().check_only()).workflow

    assert "is a toy" not in workflow.described
