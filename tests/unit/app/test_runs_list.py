import pytest

from signoff import Outcome, StepDef, Workflow
from signoff.app.project import Project
from signoff.app.runs import RunFilter, list_page
from signoff.core.outcome import Status
from signoff.errors import UsageError


async def start(project: Project, workflow: str, *names: str) -> None:
    step = StepDef("only", handler=lambda _context: (Outcome.OK, {}), next={Outcome.OK: None})
    async with project.engine() as engine:
        for name in names:
            await engine.start(Workflow(workflow, step), {}, name=name)


async def test_pages_follow_each_other_whatever_is_started_meanwhile(project: Project) -> None:
    """A list by page number would show a run twice or never."""
    await start(project, "docs", *(f"run-{number}" for number in range(5)))
    first = list_page(project, RunFilter(), limit=2)
    await start(project, "docs", "newer")

    second = list_page(project, RunFilter(), cursor=first.next or "", limit=2)
    last = list_page(project, RunFilter(), cursor=second.next or "", limit=2)

    shown = [row.name for page in (first, second, last) for row in page.rows]
    assert shown == ["run-4", "run-3", "run-2", "run-1", "run-0"]
    assert last.next is None


async def test_runs_are_found_by_status_workflow_and_text(project: Project) -> None:
    """Text means itself: signs that databases give a meaning have none."""
    await start(project, "docs", "alpha", "beta_1")
    await start(project, "code", "gamma-Alpha")

    def names(chosen: RunFilter) -> list[str]:
        return [row.name for row in list_page(project, chosen).rows]

    assert names(RunFilter(workflow="docs")) == ["beta_1", "alpha"]
    assert names(RunFilter(text="ALPHA")) == ["gamma-Alpha", "alpha"]
    assert names(RunFilter(text="a_1")) == ["beta_1"]
    assert names(RunFilter(text="%")) == []
    assert names(RunFilter(text="\ud800")) == []
    assert names(RunFilter(status=[Status.COMPLETED], workflow="code")) == ["gamma-Alpha"]
    assert names(RunFilter(status=[Status.INTERRUPTED])) == []


@pytest.mark.parametrize("cursor", ["x", "-1", "1" * 40, "٣"])
def test_a_cursor_that_no_page_named_is_refused(project: Project, cursor: str) -> None:
    """It would silently show the first page again."""
    with pytest.raises(UsageError, match="cursor"):
        list_page(project, RunFilter(), cursor=cursor)
