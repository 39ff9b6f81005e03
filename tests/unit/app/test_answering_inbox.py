import pytest

from signoff import Approval, Choice, Outcome, Question, Response, StepContext, StepDef, Workflow
from signoff.app.answering import (
    AnswerInput,
    record_answer,
    request_to_json,
)
from signoff.app.project import Project
from signoff.core.requests import Request
from signoff.testing import FrozenClock


async def ask(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    return Outcome.OK, {"name": (await ctx.wait(Question("Name?"))).value}


ASKS = Workflow("asks", StepDef("only", handler=ask, next={Outcome.OK: None}))


async def begin(project: Project, name: str = "one") -> None:
    async with project.engine() as engine:
        await engine.start(ASKS, name=name)


async def test_an_answered_request_shows_the_answer_its_author_and_time(
    project: Project, clock: FrozenClock
) -> None:
    """Commands that answer it would only fail."""
    await begin(project)
    record_answer(project, 1, AnswerInput("Bob", "of course", by="ann"))

    request = request_to_json(project, project.store.item(1))

    assert request["answer"] == {
        "value": "Bob",
        "text": "of course",
        "by": "ann",
        "at": clock.now(),
    }
    assert request["commands"] == []


@pytest.mark.parametrize(
    ("request_", "commands"),
    [
        (Approval("Ship?"), ["approve 1", 'reject 1 --why "..."']),
        (Choice("Which?", ("a", "b b")), ["answer 1 a", "answer 1 'b b'"]),
        (Response("Write."), ["answer 1 --file REPLY.md"]),
        (Question("Name?"), ['answer 1 "..."']),
    ],
)
async def test_every_command_that_answers_is_bound_to_what_is_shown(
    project: Project, request_: Request, commands: list[str]
) -> None:
    """Copied from an old log, or into another project, it would answer something else."""

    async def work(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
        await ctx.wait(request_)
        return Outcome.OK, {}

    async with project.engine() as engine:
        await engine.start(Workflow("w", StepDef("a", handler=work, next={Outcome.OK: None})))

    request = request_to_json(project, project.store.item(1))

    tail = f"--digest {request['digest'][:12]} --resume"
    assert request["commands"] == [f"signoff {command} {tail}" for command in commands]


async def test_a_request_for_a_response_names_the_file_that_holds_its_prompt(
    project: Project,
) -> None:
    """It is pasted into a chat window, all of it."""

    async def work(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
        await ctx.wait(Response("Write.\n" * 100))
        return Outcome.OK, {}

    async with project.engine() as engine:
        await engine.start(
            Workflow("w", StepDef("a", handler=work, next={Outcome.OK: None})), name="one"
        )

    request = request_to_json(project, project.store.item(1))

    path = project.folder("one") / "hitl" / "1-prompt.md"
    assert request["prompt_file"] == str(path)
    assert path.read_text().startswith("Write.\n" * 100)


async def test_an_approval_names_its_file_by_the_full_path(project: Project) -> None:
    """The recorded path starts in the run's folder, where no user is."""

    async def work(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
        await ctx.write("plan.md", "a plan")
        await ctx.wait(Approval("Good?", path="plan.md"))
        return Outcome.OK, {}

    async with project.engine() as engine:
        await engine.start(
            Workflow("w", StepDef("a", handler=work, next={Outcome.OK: None})), name="one"
        )

    request = request_to_json(project, project.store.item(1))

    assert request["path"] == "plan.md"
    assert request["file"] == str(project.folder("one") / "plan.md")
