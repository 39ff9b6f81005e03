import pytest

from signoff import Outcome, Question, StepContext, StepDef, Workflow
from signoff.app.answering import Given, record_answer
from signoff.app.inbox import open_requests, refuse_place_alone, request_to_json
from signoff.app.project import Project
from signoff.errors import UsageError
from signoff.testing import FrozenClock


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


async def test_a_request_says_what_was_answered_by_whom_and_when(
    project: Project, clock: FrozenClock
) -> None:
    """Commands to answer it would only be refused."""
    await begin(project)
    record_answer(project, 1, Given("Bob", "of course", by="ann"))

    request = request_to_json(project, project.store.item(1))

    assert request["answer"] == {
        "value": "Bob",
        "text": "of course",
        "by": "ann",
        "at": clock.now(),
    }
    assert request["commands"] == []


async def test_what_waits_is_listed_oldest_first_of_all_runs_or_of_one(project: Project) -> None:
    """A team has many runs, and a person cares for one."""
    for name in ("one", "two", "three"):
        await begin(project, name)
    record_answer(project, 1, Given("Bob"))

    assert [line.run for line in open_requests(project)] == ["two", "three"]
    assert [line.id for line in open_requests(project, "three")] == [3]
