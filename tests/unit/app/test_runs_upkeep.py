"""Tests of deleting runs and backing up a project's database."""

from typing import Any

import pytest

from signoff import Approval, Outcome, StepDef, Workflow
from signoff.app.project import Project
from signoff.app.runs import age_in_seconds, delete_runs, ended_runs, named_runs
from signoff.core.context import StepContext
from signoff.errors import UnknownName, UsageError
from signoff.runtime.owner import this_process
from signoff.testing import FrozenClock

DAY = 86_400


async def finish(_ctx: StepContext) -> tuple[Outcome, dict[str, str]]:
    return Outcome.OK, {}


async def wait(ctx: StepContext) -> tuple[Outcome, dict[str, str]]:
    await ctx.wait(Approval("Publish?", "text"))
    return Outcome.OK, {}


async def start(project: Project, name: str, handler: Any = finish) -> None:
    workflow = Workflow("w", StepDef("a", handler=handler, next={Outcome.OK: None}))
    async with project.engine() as engine:
        await engine.start(workflow, name=name)


async def test_runs_that_ended_long_ago_are_pruned_and_others_stay(
    project: Project, clock: FrozenClock
) -> None:
    """A waiting run may be the one that someone comes back to after a holiday."""
    await start(project, "old")
    await start(project, "waiting", wait)
    clock.advance(31 * DAY)
    await start(project, "fresh")

    found = ended_runs(project, "30d")
    delete_runs(project, found)

    assert [row.name for row in found] == ["old"]
    assert not project.folder("old").exists()
    assert project.folder("waiting").exists()
    assert {row.name for row in project.store.rows()} == {"waiting", "fresh"}


async def test_a_running_run_is_not_deleted(project: Project) -> None:
    """Its process would go on without a journal."""
    await start(project, "one")
    row = project.store.row("one")
    project.store.take(row.id, this_process(), lambda _owner: None)
    with project.store._write as db:  # type: ignore[attr-defined]  # as a runner leaves it
        db.execute("UPDATE runs SET status = 'running'")

    with pytest.raises(UsageError, match="'one' is running"):
        named_runs(project, ["one"])


async def test_unknown_runs_are_refused_before_any_is_deleted(project: Project) -> None:
    """A typing error must not delete half of a list."""
    await start(project, "one")

    with pytest.raises(UnknownName):
        named_runs(project, ["one", "tow"])

    assert project.has_run("one")


@pytest.mark.parametrize(
    ("text", "seconds"), [("12h", 43_200), ("30d", 2_592_000), ("1w", 604_800)]
)
def test_ages_have_units(text: str, seconds: int) -> None:
    """A number alone could be days or seconds."""
    assert age_in_seconds(text) == seconds
