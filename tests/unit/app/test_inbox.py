import pytest

from signoff import Outcome, Question, StepContext, StepDef, Workflow
from signoff.app.inbox import refuse_place_alone
from signoff.app.project import Project
from signoff.errors import UsageError


async def ask(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    return Outcome.OK, {"name": (await ctx.wait(Question("Name?"))).value}


ASKS = Workflow("asks", StepDef("only", handler=ask, next={Outcome.OK: None}))


async def begin(project: Project, name: str = "one") -> None:
    async with project.engine() as engine:
        await engine.start(ASKS, name=name)


@pytest.mark.parametrize(
    ("word", "meant"), [("1", "answer 1 VALUE"), ("#1", "answer 1 VALUE"), ("one", "answer one ")]
)
async def test_a_place_without_an_answer_is_refused(
    project: Project, word: str, meant: str
) -> None:
    """`signoff answer 7` would make "7" the answer, for good."""
    await begin(project)

    with pytest.raises(UsageError, match=f"^say what to answer: signoff {meant}"):
        refuse_place_alone(project, word)


@pytest.mark.parametrize("word", ["Bob", "2", "#2", "9" * 40, "oned", "one two", ""])
async def test_any_other_word_is_an_answer(project: Project, word: str) -> None:
    """Short answers to the only question are what most people type."""
    await begin(project)

    refuse_place_alone(project, word)
