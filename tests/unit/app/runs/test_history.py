import json
from typing import Any

import pytest

from signoff import Approval, Outcome, StepContext, StepDef, Workflow
from signoff.app.people.answering import AnswerInput, record_answer
from signoff.app.runs.history import MOST_RUNS, FollowedRuns, export, news, timeline_of
from signoff.app.runs.run_records import stored_record
from signoff.app.settings.project import Project
from signoff.core.errors import StoreDamaged
from signoff.core.events import to_json
from signoff.core.requests import Question
from signoff.review.flow.compile import compile_flow
from signoff.runtime.store_port import JournalRow, RunId
from signoff.testing import ScriptedAgent
from signoff.views.exports.run_record import RunRecord
from tests.unit.review.flow.harness import fails, flow, issue, passes, step

LONG = "word " * 3000
HOSTILE = "\x1b[2J\u202e half an emoji: \ud83d"


async def write(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    await ctx.write("long.md", LONG)
    return Outcome.OK, {"text": LONG, "hostile": HOSTILE}


FLOW = Workflow("writes", StepDef("only", handler=write, next={Outcome.OK: None}))


async def started(project: Project) -> RunRecord:
    async with project.engine() as engine:
        await engine.start(FLOW, name="one")
    return stored_record(project.store, project.run("one"))


async def test_the_document_holds_the_whole_run(project: Project) -> None:
    """It goes into archives, where the database is not at hand."""
    record = await started(project)

    document = json.loads("".join(export(project, "json", "one")))

    assert document["run"] == "one"
    assert document["status"] == "completed"
    assert document["definition"]["name"] == "writes"
    assert document["state"] == {"text": LONG, "hostile": HOSTILE}
    events = [{"seq": seq, **to_json(event)} for seq, event in record.events()]
    assert document["events"] == json.loads(json.dumps(events))
    assert LONG in {each.get("payload", {}).get("text") for each in document["events"]}


async def test_exporting_again_gives_the_same_bytes(project: Project) -> None:
    """A changed file in an archive has to mean that the run has changed."""
    await started(project)

    first, second = ("".join(export(project, "json")).encode() for _ in range(2))

    assert first == second
    assert b"\x1b" not in first


async def test_a_lost_text_is_an_error_that_only_whole_events_meet(project: Project) -> None:
    """A trace needs no texts, so a damaged run can still be looked at."""
    record = await started(project)

    def lost(digest: str) -> str:
        raise StoreDamaged(f"the text {digest[:4]} is missing")

    damaged = RunRecord("one", "writes", "", {}, record.journal, lost)
    assert [type(e) for _, e in damaged.events(whole=False)] == [
        type(e) for _, e in record.events()
    ]
    with pytest.raises(StoreDamaged, match="is missing"):
        list(damaged.events())


async def two_steps(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    approved = await ctx.wait(Approval("Ship?", "text"))
    return Outcome.OK, {"approved": approved.value}


ASKS = Workflow("asks", StepDef("only", handler=two_steps, next={Outcome.OK: None}))

LOOP = [
    step("generate", "draft"),
    step("critique", "review"),
    step("adjudicate", "judge", agent="policy"),
    step("refine", "fix", mode="rewrite", loop_to="review"),
]


async def test_nothing_is_new_for_who_has_seen_everything(project: Project) -> None:
    """A follower pays for each word of an answer."""
    async with project.engine() as engine:
        await engine.start(ASKS, name="one")
    head = project.store.row("one").head

    for after in (head, head + 100):
        found = news(project, "one", after)
        assert found.before == found.now
        assert found.decisions == ()


async def test_findings_are_counted_as_new_and_gone(project: Project) -> None:
    """An agent sees at each commit whether the review gets better."""
    first = fails(issue("A typo.", evidence="see is"), issue("Dull.", "MEDIUM", "wide"))
    claude = ScriptedAgent(["The see is wide.", first, "The sea is blue.", passes()])
    project.agents = {"claude": claude}
    async with project.engine() as engine:
        await engine.start(compile_flow(flow(LOOP), "sea"), name="one")
    heads = range(project.store.row("one").head + 1)

    seen = [news(project, "one", after) for after in heads]

    assert all(each.findings["open"] == {} for each in seen)
    assert {"HIGH": 1, "MEDIUM": 1} in [each.findings["gone"] for each in seen]
    assert seen[0].findings["gone"] == seen[-1].findings["gone"] == {}
    assert seen[0].now.spend.calls == 4


# Tests of runs that are kept in memory while someone watches them.


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
