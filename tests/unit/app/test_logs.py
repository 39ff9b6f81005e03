from signoff import Outcome, Question, StepContext, StepDef, Workflow
from signoff.app.answering import AnswerInput, record_answer
from signoff.app.logs import afterwards, logs
from signoff.app.project import Project
from signoff.core import events as ev

LONG = "word " * 3000


async def ask(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    await ctx.write("long.md", LONG)
    return Outcome.OK, {"name": (await ctx.wait(Question("Name?"))).value}


FLOW = Workflow("asks", StepDef("only", handler=ask, next={Outcome.OK: None}))


async def test_a_run_is_told_from_its_journal(project: Project) -> None:
    """Nothing but the database is needed to know what happened."""
    async with project.engine() as engine:
        await engine.start(FLOW, name="one")

    told = [line.text for entry in logs(project) for line in entry.lines]

    assert told == [
        "workflow asks started",
        "only: begins",
        "only: wrote long.md",
        "only: waits for a human (question)",
        "waiting",
    ]


async def test_long_texts_are_there_when_they_are_wanted(project: Project) -> None:
    """They are kept apart in the store; `logs --json` must not show references."""
    async with project.engine() as engine:
        await engine.start(FLOW, name="one")

    def written(whole: bool) -> str:
        found = [e.event for e in logs(project, whole=whole)]
        (write,) = [e for e in found if isinstance(e, ev.EffectStarted) and e.kind == "write"]
        return str(write.payload["text"])

    assert written(whole=True) == LONG
    assert len(written(whole=False)) < 20


async def test_following_ends_when_the_run_rests(project: Project) -> None:
    """`logs -f` in a script must come back."""
    async with project.engine() as engine:
        await engine.start(FLOW, name="one")

    entries = list(logs(project, "one", sleep=never))

    assert isinstance(entries[-1].event, ev.RunStopped)


async def test_following_picks_up_what_happens_meanwhile(project: Project) -> None:
    """The lines of the first look are not repeated, those of the second not lost."""
    async with project.engine() as engine:
        await engine.start(FLOW, name="one")
        before = len(list(logs(project)))
        record_answer(project, 1, AnswerInput("Bob"))
        await engine.resume("one", FLOW)

    entries = list(logs(project, "one", sleep=never))

    assert len(entries) > before
    assert len({(entry.seq, id(entry.event)) for entry in entries}) == len(entries)


async def test_an_answer_is_told_before_the_run_has_gone_on(project: Project) -> None:
    """Whoever asks the next morning why it was sent back must not have to resume it first."""
    async with project.engine() as engine:
        await engine.start(FLOW, name="one")
    record_answer(project, 1, AnswerInput("Bob", "as ever", by="ann"))

    (line,) = afterwards(project, "one")

    assert line.text == "only: answered 'Bob' by ann: as ever (#1, used when the run resumes)"


async def test_a_run_that_rests_has_nothing_to_add(project: Project) -> None:
    """Its journal tells everything."""
    async with project.engine() as engine:
        await engine.start(FLOW, name="one")

    assert afterwards(project, "one") == []


def never(_seconds: float) -> None:
    raise AssertionError("there was nothing to wait for")
