import json
from dataclasses import replace
from typing import Any

from signoff import Edge, Outcome, Question, StepContext, StepDef, Usage, Workflow
from signoff.app.people.answering import AnswerInput, record_answer
from signoff.app.runs.history import load_state
from signoff.app.runs.runs import list_runs
from signoff.app.runs.show import afterwards, logs, show
from signoff.app.settings.project import Project
from signoff.core import events as ev
from signoff.core.delta import Append
from signoff.core.effects import EffectId, EffectKind
from signoff.runtime.owner import this_process
from signoff.testing import FrozenClock, ScriptedAgent
from tests.store_suite.journal_writer import JournalWriter


async def work(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    reply = await ctx.ask("writer", "write")
    return Outcome.OK, {"text": reply.text}


async def ask(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    return Outcome.OK, {"name": (await ctx.wait(Question("Name?"))).value}


FLOW = Workflow(
    "review",
    StepDef("draft", handler=work, next={Outcome.OK: "sign"}),
    StepDef("sign", handler=ask, next={Outcome.OK: None}),
)


async def begin(project: Project, usage: Usage | None) -> None:
    project.agents = {"writer": ScriptedAgent(["text"], usage=usage)}
    async with project.engine() as engine:
        await engine.start(FLOW, name="one")


async def test_a_report_has_the_fields_that_scripts_rely_on(
    project: Project, clock: FrozenClock
) -> None:
    """These names are promised; a renamed one breaks a user's pipeline."""
    await begin(project, Usage(10, 5, 0.25))

    report = show(project, "one").to_json()

    assert (report["run"], report["workflow"], report["status"]) == ("one", "review", "waiting")
    assert (report["step"], report["round"]) == ("sign", 1)
    assert report["spend"]["calls"] == 1
    assert report["spend"]["tokens"] == 15
    assert report["spend"]["usd"] == 0.25
    assert [item["number"] for item in report["inbox"]] == [1]
    assert report["steps"][0] == {
        "step": "draft",
        "times": 1,
        "round": 1,
        "outcome": "ok",
        "started_at": clock.now(),
        "seconds": 0.0,
        "attempts": 1,
        "effects": {"ask": 1},
        "error": None,
    }
    assert report["steps"][1]["outcome"] is None
    assert json.loads(json.dumps(report)) == report


def test_a_limit_counts_runs_by_their_current_status(project: Project) -> None:
    """A run whose process died is stored as running, but must not count as running."""
    alive, gone = this_process(), replace(this_process(), id="gone", born="long ago")
    for name, owner in (("lives", alive), ("died", gone), ("died too", gone)):
        project.store.beat(owner, 1e12)
        JournalWriter(project.store, name, owner=owner).begin()

    def listed(*status: str) -> list[str]:
        return [row.name for row in list_runs(project, status=status, limit=1)]

    assert listed("running") == ["lives"]
    assert listed("interrupted") == ["died too"]
    assert listed() == ["died too"]


def test_a_call_in_doubt_has_an_unknown_cost(
    project: Project,
) -> None:
    """A run that was killed in its first call may have cost something."""
    gone = replace(this_process(), id="gone", born="long ago")
    project.store.beat(gone, 1e12)
    asked = {"agent": "writer", "prompt": "write"}
    events = [
        ev.RunStarted("review", "d1", "draft", {}),
        ev.EffectStarted(EffectId("ask#1"), EffectKind.ASK, "d", asked),
    ]
    text = json.dumps([ev.to_json(event) for event in events])
    JournalWriter(project.store, "died", owner=gone).begin(events=text)

    report = show(project, "died").to_json()

    assert report["status"] == "interrupted"
    assert (report["spend"]["calls"], report["spend"]["usd"]) == (1, None)
    (entry,) = report["ledger"]
    assert (entry["step"], entry["agent"], entry["model"]) == ("draft", "writer", None)
    assert (entry["calls"], entry["tokens"], entry["usd"]) == (1, None, None)
    assert (entry["tokens_in"], entry["tokens_cached"], entry["tokens_out"]) == (None, None, None)


async def test_the_state_that_is_shown_is_the_one_that_the_engine_folds(project: Project) -> None:
    """Values that later steps replaced are not folded, which must not change the result."""

    def grow(ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
        rounds = [*ctx.step_state.get("rounds", ()), ctx.visit]
        update = {"rounds": rounds, "last": ctx.visit, "log": Append([ctx.visit])}
        if ctx.visit == 2:
            update["rounds"] = ["restarted"]
        return (Outcome.OK if ctx.visit == 4 else Outcome.ITERATE), update

    edges = {Outcome.OK: None, Outcome.ITERATE: Edge("grow", 9)}
    async with project.engine() as engine:
        await engine.start(Workflow("w", StepDef("grow", handler=grow, next=edges)), name="one")

    shown = show(project, "one").state

    assert shown == load_state(project, project.run("one")).state
    assert shown["rounds"] == ["restarted", 3, 4]
    assert shown["log"] == [1, 2, 3, 4]


LONG = "word " * 3000


async def write_and_ask(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    await ctx.write("long.md", LONG)
    return Outcome.OK, {"name": (await ctx.wait(Question("Name?"))).value}


LOGGED = Workflow("asks", StepDef("only", handler=write_and_ask, next={Outcome.OK: None}))


async def test_following_includes_new_events(project: Project) -> None:
    """No line may be repeated or lost."""
    async with project.engine() as engine:
        await engine.start(LOGGED, name="one")
        before = len(list(logs(project)))
        record_answer(project, 1, AnswerInput("Bob"))
        await engine.resume("one", LOGGED)

    entries = list(logs(project, "one", sleep=never))

    assert len(entries) > before
    assert len({(entry.seq, id(entry.event)) for entry in entries}) == len(entries)


async def test_an_answer_is_logged_before_the_run_resumes(project: Project) -> None:
    """A user who wonders why it was rejected must not have to resume it first."""
    async with project.engine() as engine:
        await engine.start(LOGGED, name="one")
    record_answer(project, 1, AnswerInput("Bob", "as ever", by="ann"))

    (line,) = afterwards(project, "one")

    assert line.text == "only: answered 'Bob' by ann: as ever (#1, used when the run resumes)"


def never(_seconds: float) -> None:
    raise AssertionError("there was nothing to wait for")


async def note(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    ctx.log("turn 1: \x1b[2Jfine")
    await ctx.wait(Question("Name?"))
    return Outcome.OK, {}


NOTES = Workflow("notes", StepDef("only", handler=note, next={Outcome.OK: None}))


async def test_what_a_handler_logs_is_in_the_log_and_in_the_run_directory(project: Project) -> None:
    """The journal has it, so every view of the journal has it: once, and harmless."""
    async with project.engine() as engine:
        await engine.start(NOTES, name="one")
    async with project.engine() as engine:
        await engine.resume("one", NOTES)

    lines = [line.text for entry in logs(project) for line in entry.lines]
    folder = project.folder("one")
    thread = [json.loads(each) for each in (folder / "thread.jsonl").read_text().splitlines()]

    assert lines.count("only: turn 1: \x1b[2Jfine") == 1
    assert (folder / "live.log").read_text().count("only: turn 1: \\u001b[2Jfine\n") == 1
    assert [e["text"] for e in thread if e["kind"] == "log"] == ["turn 1: \x1b[2Jfine"]
