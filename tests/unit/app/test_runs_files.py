import shutil

from signoff import Outcome, Question, StepContext, StepDef, Workflow
from signoff.app.project import Project
from signoff.app.runs import catch_up


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

    catch_up(project, "one", warnings.append)

    assert len(warnings) == 1
    assert warnings[0].startswith("the directory of run one is not up to date: ")
