import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from signoff.core import events as ev
from signoff.core.context import StepContext
from signoff.core.effects import AgentRequest
from signoff.core.errors import InvalidAnswer
from signoff.core.outcome import Outcome, Status
from signoff.core.requests import Answer, Approval, Choice, ItemState, Question, Request, Response
from signoff.runtime.run_inbox import ApprovedFiles
from signoff.runtime.store_port import InboxItem
from signoff.store.run_files import RunFiles
from signoff.testing import WrappedStore
from tests.unit.runtime.engine_fixture import OK, DyingStore, EngineFixture, Work, one_step, only


def asking(request: Request, answers: list[Answer] | None = None) -> Any:
    async def work(ctx: StepContext) -> Work:
        answer = await ctx.wait(request)
        if answers is not None:
            answers.append(answer)
        return OK, {"reply": answer.value, "by": answer.by}

    return one_step(work)


@pytest.mark.parametrize(
    ("request_", "kind", "value"),
    [
        (Question("Topic?"), "question", "cats"),
        (Question("Ship?", ["yes", "no"]), "choice", "yes"),
        (Choice("Which?", ["a", "b"]), "choice", "b"),
        (Approval("Good?", {"draft": "x"}), "approval", True),
        (Response("Do it by hand."), "response", "done by hand"),
    ],
)
async def test_every_kind_of_request_waits_and_continues(
    bench: EngineFixture, request_: Request, kind: str, value: Any
) -> None:
    """A paste, a question, an approval and a choice are one thing with different forms."""
    workflow = asking(request_)

    waiting = await bench.start(workflow)
    bench.answer(value)
    result = await bench.resume(workflow)

    item = only(waiting.inbox)
    assert (waiting.status, item.kind, item.step) == (Status.WAITING, kind, "work")
    assert json.loads(item.form)["prompt"] == request_.prompt
    assert result.state == {"reply": value, "by": "ann"}


async def test_a_resume_without_an_answer_waits_on(bench: EngineFixture) -> None:
    """No request is made twice."""
    workflow = asking(Question("Topic?"))
    first = await bench.start(workflow)

    second = await bench.resume(workflow)

    assert second.status is Status.WAITING
    assert second.inbox == first.inbox
    assert len(bench.events(ev.EffectStarted)) == 1


async def test_an_answer_says_who_when_and_what_else(bench: EngineFixture) -> None:
    """Handlers can use the text that a human wrote along with a choice."""
    answers: list[Answer] = []
    workflow = asking(Choice("Which?", ["a", "b"]), answers)
    await bench.start(workflow)
    bench.clock.advance(60)
    when = bench.clock.now()

    bench.answer("a", "because")
    await bench.resume(workflow)

    assert answers == [Answer("a", "because", "ann", when)]


async def test_an_answer_is_used_once(bench: EngineFixture) -> None:
    """One yes approves one thing."""

    async def work(ctx: StepContext) -> Work:
        first = await ctx.wait(Question("Good?"))
        second = await ctx.wait(Question("Good?"))
        return OK, {"reply": [first.value, second.value]}

    workflow = one_step(work)
    waiting = await bench.answered(workflow)

    assert waiting.status is Status.WAITING
    assert only(bench.store.items("run", state=(ItemState.USED,))).answer is not None
    with pytest.raises(InvalidAnswer):
        bench.answer("no", number=only(bench.store.items("run", state=(ItemState.USED,))).id)


async def test_a_death_after_the_answer_was_used_does_not_lose_it(bench: EngineFixture) -> None:
    """The next process finds it in the journal."""

    async def work(ctx: StepContext) -> Work:
        answer = await ctx.wait(Question("Topic?"))
        await ctx.ask("claude", f"Write about {answer.value}.")
        return OK, {"reply": answer.value}

    bench.agent.on("Write", "hello")
    workflow = one_step(work)
    await bench.start(workflow)
    bench.answer("cats")
    await bench.restart(DyingStore(bench.store, 2))
    with pytest.raises(Exception, match="disk is full"):
        await bench.engine.resume("run", workflow)

    result = await bench.resume(workflow)

    assert result.state == {"reply": "cats"}


async def test_the_answer_to_work_that_is_found_done_counts_as_used(bench: EngineFixture) -> None:
    """Work can be done and its process killed before the journal records it."""
    done: list[str] = []

    async def work(ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
        if not done:
            await ctx.wait(Question("Is it done?"))
        return Outcome.OK, {}

    workflow = one_step(work)
    await bench.start(workflow)
    done.append("the work")
    bench.answer("yes")
    result = await bench.resume(workflow)

    assert result.status is Status.COMPLETED
    items = bench.store.items("run", state=tuple(ItemState))
    assert [item.state for item in items] == [ItemState.USED]


async def test_a_run_is_due_at_its_deadline_and_takes_the_default_then(
    bench: EngineFixture,
) -> None:
    """`resume --due` has to find it; a minute early is not late."""
    workflow = asking(Question("Topic?", deadline=timedelta(hours=1), default="cats"))
    due = bench.clock.now() + 3600

    first = await bench.start(workflow)
    found = [row.name for row in bench.store.rows(due_before=due)]
    bench.clock.advance(3599)
    waiting = await bench.resume(workflow)
    bench.clock.advance(1)
    result = await bench.resume(workflow)

    assert (first.due_at, only(first.inbox).deadline, found) == (due, due, ["run"])
    assert (waiting.status, waiting.due_at) == (Status.WAITING, due)
    assert result.state == {"reply": "cats", "by": "deadline"}


# Deadlines


async def test_an_answer_before_the_deadline_wins(bench: EngineFixture) -> None:
    """Even when the run is resumed long after."""
    workflow = asking(Question("Topic?", deadline=timedelta(hours=1), default="cats"))
    await bench.start(workflow)
    bench.answer("dogs")
    bench.clock.advance(99_999)

    assert (await bench.resume(workflow)).state == {"reply": "dogs", "by": "ann"}


async def test_the_first_of_several_deadlines_is_when_the_run_is_due(bench: EngineFixture) -> None:
    """Woken at the last one, the others would have been missed."""

    async def item(ctx: StepContext, hours: int) -> str:
        request = Question("?", deadline=timedelta(hours=hours), default="-")
        return str((await ctx.wait(request)).value)

    async def work(ctx: StepContext) -> Work:
        return OK, {"reply": await ctx.map([3, 1, 2], item)}

    workflow = one_step(work)
    began = bench.clock.now()

    first = await bench.start(workflow)
    bench.clock.advance(3600)
    second = await bench.resume(workflow)

    assert first.due_at == began + 3600
    assert second.due_at == began + 7200
    assert len(second.inbox) == 2


class RacingStore(WrappedStore):
    """Adds an answer after the deadline has passed but before the default is used."""

    def answer(self, number: int, answer: str, by: str, at: float, digest: str) -> InboxItem:
        if by == "deadline":
            self.inner.answer(number, '{"value": "dogs"}', "ann", at, digest)
        return self.inner.answer(number, answer, by, at, digest)


async def test_an_answer_in_the_last_moment_is_used_instead_of_the_default(
    bench: EngineFixture,
) -> None:
    """The person was first; the resume must not fail because of it."""
    workflow = asking(Question("Topic?", deadline=timedelta(hours=1), default="cats"))
    await bench.start(workflow)
    bench.clock.advance(3600)
    await bench.restart(RacingStore(bench.store))

    result = await bench.engine.resume("run", workflow)

    assert result.state == {"reply": "dogs", "by": "ann"}


# Wake-ups


async def test_an_answer_that_comes_while_a_sibling_works_is_not_missed(
    bench: EngineFixture,
) -> None:
    """A lost wake-up is a run that waits for ever for an answer it has."""

    async def work(ctx: StepContext) -> Work:
        reply, answer = await asyncio.gather(
            ctx.ask("claude", "Write."), ctx.wait(Question("Topic?"))
        )
        return OK, {"draft": reply.text, "reply": answer.value}

    def quick_person(_request: AgentRequest) -> str:
        bench.answer("quick")
        return "hello"

    bench.agent.on("Write.", quick_person)

    result = await bench.start(one_step(work))

    assert result.state == {"draft": "hello", "reply": "quick"}
    assert len(bench.agent.prompts) == 1
    assert [e.tag for e in bench.events(ev.RunStopped)] == ["run_stopped"] * 2


TEXT = "the plan\n"


async def work(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    await ctx.write("plan.md", "a first plan\n", key="first")
    await ctx.write("plan.md", TEXT, key="second")
    return Outcome.OK, {}


@pytest.mark.parametrize("content", [TEXT, None], ids=["text shown", "only the file"])
async def test_a_file_counts_as_unchanged_until_its_content_changes(
    tmp_path: Path, content: object
) -> None:
    """An approval counts for that and nothing else; the earlier draft will not do either."""
    files = RunFiles(tmp_path)
    bench = EngineFixture(files=files)
    await bench.start(one_step(work))
    form = Approval("Good?", content, path="plan.md").to_json()
    approved = ApprovedFiles(bench.store, files)

    found = [approved.unchanged("run", form)]
    for text in ("a first plan\n", "the plan", TEXT):
        files.write("run", "plan.md", text)
        found.append(approved.unchanged("run", form))

    assert found == [True, False, False, True]
