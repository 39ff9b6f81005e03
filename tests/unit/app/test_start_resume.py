from dataclasses import replace

import pytest

from signoff.app.project import Project
from signoff.app.start import due_runs, resume, resume_due, start
from signoff.core.outcome import Status
from signoff.errors import AgentAuth, InvalidWorkflow, UsageError
from signoff.remedies import Resume
from signoff.testing import FrozenClock, ScriptedAgent

FLOW = """
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
def flow(project: Project) -> None:
    (project.home.root / "flow.py").write_text(FLOW)


async def begin(project: Project, workflow: str, name: str) -> Status:
    result = await start(project, project.find(f"flow.py:{workflow}"), {}, name=name)
    return result.status


async def test_a_run_without_a_stored_target_shows_how_to_name_one(project: Project) -> None:
    """Runs started from Python may have no module to import."""
    workflow = project.find("flow.py:ASKS").workflow
    async with project.engine() as engine:
        await engine.start(workflow, name="one")

    with pytest.raises(UsageError) as refused:
        await resume(project, "one")
    assert refused.value.remedies == (Resume("one", target=True),)
    assert (await resume(project, "one", target="flow.py:ASKS")).status is Status.WAITING


async def test_a_run_whose_workflow_has_moved_shows_how_to_name_it(project: Project) -> None:
    """The files next to the old path do not help the user who moved it."""
    await begin(project, "ASKS", "one")
    (project.home.root / "flow.py").rename(project.home.root / "moved.py")

    with pytest.raises(UsageError, match="unknown file") as refused:
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
    project.agents = {"claude": ScriptedAgent([AgentAuth("not logged in")])}
    await start(project, project.find("writes.py"), {}, name="one")

    waiting = await resume(project, "one", switch={"claude": "manual"})

    assert waiting.status is Status.WAITING


@pytest.mark.parametrize("switched", ["claude", "worker"])
async def test_the_default_worker_can_be_switched_by_its_name_or_its_role(
    project: Project, switched: str
) -> None:
    """No setting mentions the role, but its agent can be out of quota all the same."""
    (project.home.root / "looks.py").write_text(LOOKS)
    project.agents = {"claude": ScriptedAgent([AgentAuth("not logged in")])}
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


async def test_a_deleted_constraint_can_be_copied_from_the_run(project: Project) -> None:
    """A run that waited for weeks must not be lost with a deleted file."""
    root = project.home.root
    (root / "clear.yaml").write_text("summary: It is clear.\n")
    (root / "sea.yaml").write_text(SEA)
    await start(project, project.find("sea.yaml"), {}, name="sea")
    (root / "clear.yaml").unlink()

    with pytest.raises(InvalidWorkflow, match=r"has goal\.yaml and constraints"):
        await resume(project, "sea")

    stored = root / ".signoff/runs/sea/constraints/clear.yaml"
    (root / "clear.yaml").write_bytes(stored.read_bytes())
    assert (await resume(project, "sea")).status is Status.WAITING
