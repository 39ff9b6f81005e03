from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from signoff.app.runs.start import (
    StartRequest,
    due_runs,
    plan,
    plan_named,
    resume,
    resume_due,
    start,
    startable,
    with_roles,
)
from signoff.app.settings.home import init_home
from signoff.app.settings.presets import init_project
from signoff.app.settings.project import Project
from signoff.core import errors as er
from signoff.core.outcome import Status
from signoff.core.remedies import Resume
from signoff.core.spend import Limits
from signoff.testing import FrozenClock, ScriptedAgent

FLOW = """
from typing import Annotated
from signoff import Arg, Limits, Outcome, StepDef, Workflow

def work(ctx, rounds: Annotated[int, Arg(min=1, max=5)] = 2):
    return Outcome.OK, {"rounds": rounds}

WORKFLOW = Workflow(
    "counts", StepDef("only", handler=work, next={Outcome.OK: None}), limits=Limits(usd=2, calls=9)
)
"""


@pytest.fixture
def flow(tmp_path: Path) -> str:
    (tmp_path / "flow.py").write_text(FLOW)
    return "flow.py"


def test_limits_of_the_command_line_override_the_workflow_and_the_settings(
    tmp_path: Path, flow: str
) -> None:
    """The user who starts the run pays for it."""
    surroundings = environment(tmp_path) | {
        "SIGNOFF_LIMITS_USD": "1",
        "SIGNOFF_LIMITS_TOKENS": "7",
    }

    planned = plan(tmp_path, surroundings, flow, {}, command_line={"limits.calls": "3"})

    assert planned.limits == Limits(usd=2, tokens=7, calls=3)
    assert planned.own_limits == Limits(calls=3)


def environment(folder: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(folder / "nothing-here")}


INSTRUCTED = """
from signoff import Outcome, StepDef, Workflow
from signoff.runtime.sub_agents import Dispatch

WORKFLOW = Workflow(
    "instructed",
    StepDef("work", actions=["Do it."], next={Outcome.OK: "check"}),
    StepDef("check", handler=Dispatch("critic"), next={Outcome.OK: None, Outcome.FAIL: None}),
    roles={"critic": "absent"},
)
"""
AGENTS = """
agents:
  absent: {kind: command, argv: [no-such-program-anywhere]}
  there: {kind: command, argv: [sh]}
roles: {worker: absent}
"""


def test_the_agents_of_instructions_are_checked_before_a_run_starts(tmp_path: Path) -> None:
    """A procedure of twenty steps must not stop at the last one for want of a program."""
    (tmp_path / ".signoff").mkdir(exist_ok=True)
    (tmp_path / ".signoff" / "config.yaml").write_text(AGENTS)
    (tmp_path / "flow.py").write_text(INSTRUCTED)
    planned = plan(tmp_path, environment(tmp_path), "flow.py", {})

    assert list(planned.not_ready()) == ["absent"]
    assert list(planned.not_ready({"worker": "there"})) == ["absent"]
    assert planned.not_ready(with_roles({"absent": "there"}, planned.roles)) == {}


def test_the_agents_of_pairs_and_profiles_are_checked_before_a_run_starts(tmp_path: Path) -> None:
    """They are known before the first prompt."""
    (tmp_path / ".signoff" / "profiles").mkdir(parents=True)
    (tmp_path / ".signoff" / "config.yaml").write_text(AGENTS)
    pair = plan(
        tmp_path,
        environment(tmp_path),
        "pair:text",
        {"task": "x", "writer": "there", "reviewers": "absent"},
    )
    init_project(tmp_path, environment(tmp_path), "profile")
    options = {"planner": "there", "generator": "absent"}
    profile = plan(tmp_path, environment(tmp_path), "profile:letter", {}, options=options)

    assert list(pair.not_ready()) == ["absent"]
    assert list(profile.not_ready()) == ["absent"]


# Callers start workflows of the catalog, in any form that `run` takes, and nothing else.


PYTHON = '''
from signoff import Arg, Outcome, StepDef, Workflow
from typing import Annotated


def greet(ctx, who: Annotated[str, Arg("Whom to greet", required=True)]):
    """Greets."""
    return Outcome.OK, {"text": f"Hello, {who}."}


step = StepDef("greet", handler=greet, next={Outcome.OK: None})
WORKFLOW = Workflow("hello", step, description="Greets someone.")
'''
FLOW_NAMED = """
name: sea
goal: Write.
constraints: {inline: {a: Be clear.}}
workflow: [{step: generate}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = init_home(tmp_path, {}).home
    (home.flows / "hello.py").write_text(PYTHON)
    (home.flows / "sea.yaml").write_text(FLOW_NAMED.replace("\\\n", "\n"))
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

    assert found.find("team_flows/hi.py:WORKFLOW", folder).name == "hi"
    with pytest.raises(er.UnknownName):
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

    with pytest.raises(er.UnknownName, match="unknown workflow"):
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
    with pytest.raises(er.UsageError, match=problem):
        plan_named(folder, {}, request("sea", options=options))


def test_only_a_human_extends_what_a_run_may_do(folder: Path) -> None:
    """A flow's scripts run with the rights of signoff."""
    asked = request("sea", options={"allow_scripts": True})

    with pytest.raises(er.NotAllowed, match="a human can"):
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


FLOW_RESUME = """
from datetime import timedelta
from signoff import Outcome, Question, StepDef, Workflow

async def park(ctx):
    await ctx.park(timedelta(seconds=60))
    return Outcome.OK, {}

async def ask(ctx):
    request = Question("Name?", deadline=timedelta(seconds=60), default="anonymous")
    return Outcome.OK, {"name": (await ctx.wait(request)).value}

PARKS = Workflow("parks", StepDef("only", handler=park, next={Outcome.OK: None}))
ASKS = Workflow("asks", StepDef("only", handler=ask, next={Outcome.OK: None}))
"""

LOOKS = """
from signoff import Outcome, StepDef, Workflow

WORKFLOW = Workflow("looks", StepDef("look", "Look", ["Look around."], next={Outcome.OK: None}))
"""

WRITES = """
from signoff import Outcome, StepDef, Workflow

SCHEMA = {"type": "object", "required": ["line"]}

async def write(ctx):
    return Outcome.OK, (await ctx.ask("writer", "Write.", schema=SCHEMA)).value

WORKFLOW = Workflow("writes", StepDef("only", handler=write, next={Outcome.OK: None}))
"""

SEA = """
goal: A line about the sea.
constraints: {files: [clear.yaml]}
workflow:
  - {step: generate, agent: manual}
  - {step: critique}
  - {step: adjudicate, agent: policy}
"""


@pytest.fixture(autouse=True)
def flow_resume(project: Project) -> None:
    (project.home.root / "flow.py").write_text(FLOW_RESUME)


async def begin(project: Project, workflow: str, name: str) -> Status:
    result = await start(project, project.find(f"flow.py:{workflow}"), {}, name=name)
    return result.status


async def test_a_run_without_a_stored_target_shows_how_to_name_one(project: Project) -> None:
    """Runs started from Python may have no module to import."""
    workflow = project.find("flow.py:ASKS").workflow
    async with project.engine() as engine:
        await engine.start(workflow, name="one")

    with pytest.raises(er.UsageError) as refused:
        await resume(project, "one")
    assert refused.value.remedies == (Resume("one", target=True),)
    assert (await resume(project, "one", target="flow.py:ASKS")).status is Status.WAITING


async def test_a_run_whose_workflow_has_moved_shows_how_to_name_it(project: Project) -> None:
    """The files next to the old path do not help the user who moved it."""
    await begin(project, "ASKS", "one")
    (project.home.root / "flow.py").rename(project.home.root / "moved.py")

    with pytest.raises(er.UsageError, match="unknown file") as refused:
        await resume(project, "one")

    assert refused.value.remedies == (Resume("one", target=True),)


async def test_only_due_runs_are_resumed(project: Project, clock: FrozenClock) -> None:
    """Resuming a parked run early would only hit the same quota again."""
    assert await begin(project, "PARKS", "first") is Status.PARKED
    clock.advance(30)
    await begin(project, "PARKS", "second")
    clock.advance(31)

    resumed = await resume_due(project)

    assert [(each.run, each.result and each.result.status) for each in resumed] == [
        ("first", Status.COMPLETED)
    ]
    assert due_runs(project) == []


async def test_a_run_whose_deadline_has_passed_is_due_and_uses_the_default(
    project: Project, clock: FrozenClock
) -> None:
    """No one answered, so the author's default counts."""
    await begin(project, "ASKS", "one")
    clock.advance(61)

    (resumed,) = await resume_due(project)

    assert resumed.result is not None
    assert resumed.result.state == {"name": "anonymous"}


async def test_a_run_that_cannot_be_resumed_does_not_stop_the_others(
    project: Project, clock: FrozenClock
) -> None:
    """One deleted file must not stop a whole night's work."""
    await begin(project, "PARKS", "fine")
    async with project.engine() as engine:
        parks = project.find("flow.py:PARKS").workflow
        await engine.start(parks, name="lost", target="gone.py:PARKS")
    clock.advance(61)

    resumed = {each.run: each for each in await resume_due(project)}

    fine = resumed["fine"].result
    assert fine is not None
    assert fine.status is Status.COMPLETED
    assert "gone.py" in str(resumed["lost"].error)


async def test_switching_an_agent_switches_its_roles(project: Project) -> None:
    """Users know which agent is out of quota, not which roles it plays."""
    (project.home.root / "writes.py").write_text(WRITES)
    project.settings = replace(project.settings, roles={"writer": "claude"})
    project.agents = {"claude": ScriptedAgent([er.AgentAuth("not logged in")])}
    await start(project, project.find("writes.py"), {}, name="one")

    waiting = await resume(project, "one", switch={"claude": "manual"})

    assert waiting.status is Status.WAITING


@pytest.mark.parametrize("switched", ["claude", "worker"])
async def test_the_default_worker_can_be_switched_by_its_name_or_its_role(
    project: Project, switched: str
) -> None:
    """No setting mentions the role, but its agent can be out of quota all the same."""
    (project.home.root / "looks.py").write_text(LOOKS)
    project.agents = {"claude": ScriptedAgent([er.AgentAuth("not logged in")])}
    failed = await start(project, project.find("looks.py"), {}, name="one")
    warnings: list[str] = []

    waiting = await resume(project, "one", switch={switched: "manual"}, warn=warnings.append)

    assert "not logged in" in failed.reason
    assert waiting.status is Status.WAITING
    assert warnings == []


async def test_a_switch_of_an_unknown_agent_is_a_warning(project: Project) -> None:
    """Otherwise a typo would have no effect and no message."""
    (project.home.root / "writes.py").write_text(WRITES)
    warnings: list[str] = []
    await start(project, project.find("writes.py"), {}, name="one")

    for agent in ("writer", "wrtier"):
        await resume(project, "one", switch={agent: "manual"}, warn=warnings.append)

    assert [warning for warning in warnings if "'wrtier'" in warning] == warnings
    assert len(warnings) == 1


# Tests of `resume` with corrected parameters.


FLOW_RESUME_PARAMS = """
from signoff import Outcome, StepDef, Workflow

def first(ctx, topic: str):
    return Outcome.OK, {"topic": topic}

def second(ctx, words: int = 0):
    if words < 1:
        raise ValueError("no words")
    return Outcome.OK, {"words": words}

WORKFLOW = Workflow(
    "two",
    StepDef("first", handler=first, next={Outcome.OK: "second"}),
    StepDef("second", handler=second, next={Outcome.OK: None}),
)
"""


@pytest.fixture
async def failed(project: Project, tmp_path: Path) -> Project:
    """A run whose second step failed because of its parameter."""
    (tmp_path / "flow.py").write_text(FLOW_RESUME_PARAMS)
    result = await start(project, project.find("flow.py"), {"topic": "sea"}, name="one")
    assert result.status is Status.FAILED
    return project


async def test_a_parameter_that_only_unfinished_steps_use_is_corrected(failed: Project) -> None:
    """A typo in a late parameter need not cost everything that was done before."""
    result = await resume(failed, "one", params={"words": "3"})

    assert result.status is Status.COMPLETED, result
    assert result.state == {"topic": "sea", "words": 3}


async def test_a_parameter_that_a_finished_step_used_is_refused(failed: Project) -> None:
    """Half of the work would be about one topic and half about another."""
    with pytest.raises(er.UsageError, match=r"'topic' cannot be corrected.*\(first\)"):
        await resume(failed, "one", params={"topic": "lake"})


async def test_an_unknown_or_wrong_correction_is_refused(failed: Project) -> None:
    """The run stays as it was."""
    head = failed.run("one").head

    for params in ({"wrods": "3"}, {"words": "many"}):
        with pytest.raises(er.InvalidParams):
            await resume(failed, "one", params=params)

    assert failed.run("one").head == head


async def test_a_deleted_constraint_can_be_copied_from_the_run(project: Project) -> None:
    """A run that waited for weeks must not be lost with a deleted file."""
    root = project.home.root
    (root / "clear.yaml").write_text("summary: It is clear.\n")
    (root / "sea.yaml").write_text(SEA)
    await start(project, project.find("sea.yaml"), {}, name="sea")
    (root / "clear.yaml").unlink()

    with pytest.raises(er.InvalidWorkflow, match=r"clear"):
        await resume(project, "sea")

    stored = root / ".signoff/runs/sea/constraints/clear.yaml"
    (root / "clear.yaml").write_bytes(stored.read_bytes())
    assert (await resume(project, "sea")).status is Status.WAITING
