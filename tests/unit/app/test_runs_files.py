import json
import shutil

from signoff import Outcome, Question, StepContext, StepDef, Workflow
from signoff.app.answering import AnswerInput, record_answer
from signoff.app.project import Project
from signoff.app.runs import catch_up


async def work(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    await ctx.write("draft.md", "the draft\n")
    return Outcome.OK, {"name": (await ctx.wait(Question("Name?"))).value}


FLOW = Workflow("asks", StepDef("only", handler=work, next={Outcome.OK: None}))


async def begin(project: Project) -> None:
    async with project.engine() as engine:
        await engine.start(FLOW, name="one")


async def finish(project: Project) -> None:
    record_answer(project, 1, AnswerInput("Bob"))
    async with project.engine() as engine:
        await engine.resume("one", FLOW)


async def test_an_answered_question_is_removed_from_the_directory(project: Project) -> None:
    """A user who works with the files would answer it again."""
    await begin(project)
    questions = project.folder("one") / "hitl" / "questions.json"
    assert "Name?" in questions.read_text()
    record_answer(project, 1, AnswerInput("Bob"))

    catch_up(project, "one")

    assert not questions.exists()


async def test_a_deleted_directory_is_written_again(project: Project) -> None:
    """Everything is in the journal; only the files were lost."""
    await begin(project)
    await finish(project)
    before = (project.folder("one") / "state.json").read_text()
    shutil.rmtree(project.folder("one"))

    catch_up(project, "one")

    after = json.loads((project.folder("one") / "state.json").read_text())
    assert after == json.loads(before)
    assert (project.folder("one") / "draft.md").read_text() == "the draft\n"


async def test_a_directory_that_cannot_be_written_is_a_warning(project: Project) -> None:
    """The answer is recorded; after an error, the user would give it again."""
    await begin(project)
    shutil.rmtree(project.home.runs)
    project.home.runs.write_text("in the way")
    warnings: list[str] = []

    catch_up(project, "one", warnings.append)

    assert len(warnings) == 1
    assert warnings[0].startswith("the directory of run one is not up to date: ")
