import pytest

from signoff import Outcome, Question, StepContext, StepDef, Workflow
from signoff.app.project import Project
from signoff.app.runs import cancel
from signoff.core.outcome import Status
from signoff.errors import UsageError


async def ask(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    return Outcome.OK, {"name": (await ctx.wait(Question("Name?"))).value}


async def test_a_cancelled_run_has_a_reason_and_no_open_requests(
    project: Project,
) -> None:
    """An inbox full of requests of ended runs is useless."""
    async with project.engine() as engine:
        await engine.start(
            Workflow("asks", StepDef("only", handler=ask, next={Outcome.OK: None})), name="one"
        )

    name, status = await cancel(project, None, "wrong input")

    assert (name, status) == ("one", Status.CANCELLED)
    assert project.run("one").reason == "wrong input"
    assert project.store.items("one") == []


async def test_a_run_that_has_ended_cannot_be_cancelled(project: Project) -> None:
    """A completed run must not be shown as cancelled."""
    async with project.engine() as engine:
        await engine.start(Workflow("x", StepDef("only", next={Outcome.OK: None})), name="one")

    with pytest.raises(UsageError, match="completed"):
        await cancel(project, "one")
