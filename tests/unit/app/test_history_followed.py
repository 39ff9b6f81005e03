"""Tests of runs that are kept in memory while someone watches them."""

from typing import Any

import pytest

from signoff import Outcome, StepContext, StepDef, Workflow
from signoff.app.answering import AnswerInput, record_answer
from signoff.app.history import MOST_RUNS, FollowedRuns, timeline_of
from signoff.app.project import Project
from signoff.core.requests import Question
from signoff.errors import StoreDamaged
from signoff.runtime.store_port import JournalRow, RunId


async def ask(context: StepContext) -> tuple[Outcome, dict[str, Any]]:
    answer = await context.wait(Question("Which?"), key="q")
    return Outcome.OK, {"answer": answer.value}


WORKFLOW = Workflow(
    "asks",
    StepDef("first", handler=lambda _context: (Outcome.OK, {}), next={Outcome.OK: "ask"}),
    StepDef("ask", handler=ask, next={Outcome.OK: None}),
)


async def test_a_run_is_followed_as_its_journal_grows(project: Project) -> None:
    """The page shows the same after a hundred small steps as after one large one."""
    runs = FollowedRuns()
    async with project.engine() as engine:
        await engine.start(WORKFLOW, {}, name="run")
        with runs.look(project, project.store.row("run")) as run:
            before = (run.head, len(run.timeline.visits), run.timeline.state.status)
        record_answer(project, 1, AnswerInput("this", by="ann"))
        await engine.resume("run", WORKFLOW)

    row = project.store.row("run")
    with runs.look(project, row) as run:
        fresh = timeline_of(project, row)
        assert before == (run.head - (row.head - before[0]), 2, "waiting")
        assert run.head == row.head
        assert [visit.outcome for visit in run.timeline.visits] == [Outcome.OK, Outcome.OK]
        assert run.timeline.decisions == fresh.decisions
        assert run.timeline.spend == fresh.spend
        assert run.log[-1].text == "completed"
        assert run.review is None


async def test_what_was_read_once_is_not_read_again(project: Project) -> None:
    """A refresh costs as much as what has happened since."""
    runs = FollowedRuns()
    async with project.engine() as engine:
        await engine.start(WORKFLOW, {}, name="run")
    with runs.look(project, project.store.row("run")) as first:
        head = first.head

    with runs.look(project, project.store.row("run")) as second:
        assert second is first
        assert project.store.journal(project.store.row("run").id, head) == []


async def test_only_a_few_runs_are_kept(project: Project) -> None:
    """Someone who clicks through ten thousand runs must not fill the memory."""
    runs = FollowedRuns()
    async with project.engine() as engine:
        for number in range(MOST_RUNS + 1):
            await engine.start(WORKFLOW, {}, name=f"run-{number}")
    seen = []
    for number in [*range(MOST_RUNS + 1), 0]:
        with runs.look(project, project.store.row(f"run-{number}")) as run:
            seen.append(run)

    assert len(runs._runs) == MOST_RUNS
    assert seen[0] is not seen[-1]


async def test_a_look_that_failed_is_made_again_from_the_start(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that is locked for a moment must not leave a run half read."""
    runs = FollowedRuns()
    async with project.engine() as engine:
        await engine.start(WORKFLOW, {}, name="run")
    row, journal = project.store.row("run"), project.store.journal
    half = [*journal(RunId(row.id))[:1], JournalRow(2, "[{")]
    monkeypatch.setattr(project.store, "journal", lambda *_args: half)
    with pytest.raises(StoreDamaged), runs.look(project, row):
        pass
    monkeypatch.undo()

    with runs.look(project, row) as run:
        assert run.head == row.head
        assert len(run.timeline.visits) == 2


async def test_a_run_that_took_the_name_of_a_deleted_one_is_another_run(project: Project) -> None:
    """The page must not show what was deleted."""
    runs = FollowedRuns()
    async with project.engine() as engine:
        await engine.start(WORKFLOW, {}, name="run")
        old = project.store.row("run")
        with runs.look(project, old) as before:
            pass
        project.store.delete(old.id, lambda _owner: False)
        project.clock.advance(5)  # type: ignore[attr-defined]
        await engine.start(WORKFLOW, {}, name="run")

    with runs.look(project, project.store.row("run")) as after:
        assert after is not before
