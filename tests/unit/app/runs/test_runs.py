"""Tests of listing and deleting runs, and of their directories."""

import shutil
from typing import Any

import pytest

from signoff import Approval, Outcome, Question, StepContext, StepDef, Workflow
from signoff.app.runs import runs
from signoff.app.settings.project import Project
from signoff.core.errors import UnknownName, UsageError
from signoff.core.outcome import Status
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

    found = runs.ended_runs(project, "30d")
    runs.delete_runs(project, found)

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
        runs.named_runs(project, ["one"])


async def test_unknown_runs_are_refused_before_any_is_deleted(project: Project) -> None:
    """A typing error must not delete half of a list."""
    await start(project, "one")

    with pytest.raises(UnknownName):
        runs.named_runs(project, ["one", "tow"])

    assert project.has_run("one")


@pytest.mark.parametrize(
    ("text", "seconds"), [("12h", 43_200), ("30d", 2_592_000), ("1w", 604_800)]
)
def test_ages_have_units(text: str, seconds: int) -> None:
    """A number alone could be days or seconds."""
    assert runs.age_in_seconds(text) == seconds


async def start_runs(project: Project, workflow: str, *names: str) -> None:
    step = StepDef("only", handler=lambda _context: (Outcome.OK, {}), next={Outcome.OK: None})
    async with project.engine() as engine:
        for name in names:
            await engine.start(Workflow(workflow, step), {}, name=name)


async def test_pages_follow_each_other_whatever_is_started_meanwhile(project: Project) -> None:
    """A list by page number would show a run twice or never."""
    await start_runs(project, "docs", *(f"run-{number}" for number in range(5)))
    first = runs.list_page(project, runs.RunFilter(), limit=2)
    await start_runs(project, "docs", "newer")

    second = runs.list_page(project, runs.RunFilter(), cursor=first.next or "", limit=2)
    last = runs.list_page(project, runs.RunFilter(), cursor=second.next or "", limit=2)

    shown = [row.name for page in (first, second, last) for row in page.rows]
    assert shown == ["run-4", "run-3", "run-2", "run-1", "run-0"]
    assert last.next is None


async def test_runs_are_found_by_status_workflow_and_text(project: Project) -> None:
    """Text means itself: signs that databases give a meaning have none."""
    await start_runs(project, "docs", "alpha", "beta_1")
    await start_runs(project, "code", "gamma-Alpha")

    def names(chosen: runs.RunFilter) -> list[str]:
        return [row.name for row in runs.list_page(project, chosen).rows]

    assert names(runs.RunFilter(workflow="docs")) == ["beta_1", "alpha"]
    assert names(runs.RunFilter(text="ALPHA")) == ["gamma-Alpha", "alpha"]
    assert names(runs.RunFilter(text="a_1")) == ["beta_1"]
    assert names(runs.RunFilter(text="%")) == []
    assert names(runs.RunFilter(text="\ud800")) == []
    assert names(runs.RunFilter(status=[Status.COMPLETED], workflow="code")) == ["gamma-Alpha"]
    assert names(runs.RunFilter(status=[Status.INTERRUPTED])) == []


@pytest.mark.parametrize("cursor", ["x", "-1", "1" * 40, "٣"])
def test_a_cursor_that_no_page_named_is_refused(project: Project, cursor: str) -> None:
    """It would silently show the first page again."""
    with pytest.raises(UsageError, match="cursor"):
        runs.list_page(project, runs.RunFilter(), cursor=cursor)


async def work(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    await ctx.write("draft.md", "the draft\n")
    return Outcome.OK, {"name": (await ctx.wait(Question("Name?"))).value}


FLOW = Workflow("asks", StepDef("only", handler=work, next={Outcome.OK: None}))


async def begin(project: Project) -> None:
    async with project.engine() as engine:
        await engine.start(FLOW, name="one")


async def test_a_directory_that_cannot_be_written_is_a_warning(project: Project) -> None:
    """The answer is recorded; after an error, the user would give it again."""
    await begin(project)
    shutil.rmtree(project.home.runs)
    project.home.runs.write_text("in the way")
    warnings: list[str] = []

    runs.catch_up(project, "one", warnings.append)

    assert len(warnings) == 1
    assert warnings[0].startswith("the directory of run one is not up to date: ")
