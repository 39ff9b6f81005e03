import json

from signoff import Outcome, Question, StepContext, StepDef, Workflow
from signoff.app.answering import AnswerInput, record_answer
from signoff.app.project import Project
from signoff.app.show import afterwards, logs

LONG = "word " * 3000


async def ask(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    await ctx.write("long.md", LONG)
    return Outcome.OK, {"name": (await ctx.wait(Question("Name?"))).value}


FLOW = Workflow("asks", StepDef("only", handler=ask, next={Outcome.OK: None}))


async def test_following_includes_new_events(project: Project) -> None:
    """No line may be repeated or lost."""
    async with project.engine() as engine:
        await engine.start(FLOW, name="one")
        before = len(list(logs(project)))
        record_answer(project, 1, AnswerInput("Bob"))
        await engine.resume("one", FLOW)

    entries = list(logs(project, "one", sleep=never))

    assert len(entries) > before
    assert len({(entry.seq, id(entry.event)) for entry in entries}) == len(entries)


async def test_an_answer_is_logged_before_the_run_resumes(project: Project) -> None:
    """A user who wonders why it was rejected must not have to resume it first."""
    async with project.engine() as engine:
        await engine.start(FLOW, name="one")
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
