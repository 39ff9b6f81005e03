"""Requests whose answers are checked: sent back with every problem, then decided by a human."""

import pytest

from signoff.core.checked import CheckedReply, Otherwise
from signoff.core.context import Failure, StepContext
from signoff.core.effects import ProductPrompt, Reply
from signoff.core.errors import AgentBadOutput, StepFailed, UsageError
from signoff.core.outcome import Status
from signoff.core.requests import Choice, Question, Request
from tests.unit.runtime.engine_fixture import OK, EngineFixture, Work, one_step

ASK = Choice("Not a number. What now?", ["retry", "zero"])


def number(reply: Reply) -> int:
    if not reply.text.isdigit():
        raise AgentBadOutput("", "not a number", f"it has {len(reply.text)} characters")
    return int(reply.text)


async def count(ctx: StepContext) -> Work:
    checked = await ctx.ask("claude", "How many?", read=number, otherwise=ASK)
    return OK, {"count": checked.value, "sent_back": list(checked.sent_back)}


async def test_a_bad_answer_is_sent_back_with_itself_and_all_its_problems(
    bench: EngineFixture,
) -> None:
    """An agent that gets one problem at a time needs as many calls as it made mistakes."""
    bench.agent.on("not a number", "7").on("", "seven or so")

    result = await bench.start(one_step(count))

    assert result.state == {"count": 7, "sent_back": ["not a number", "it has 11 characters"]}
    first, second = bench.agent.prompts
    assert second.startswith(first)
    assert "seven or so" in second
    assert "- not a number\n- it has 11 characters" in second


@pytest.mark.parametrize(("choice", "count_"), [("zero", None), ("retry", 7)])
async def test_a_human_decides_when_the_retry_did_not_help(
    bench: EngineFixture, choice: str, count_: int | None
) -> None:
    """An unreadable answer must not count, and must not be requested forever."""
    bench.agent.on("Count the cats.", "7").on("", "many")
    workflow = one_step(count)
    result = await bench.answered(workflow, choice, "Count the cats." if choice == "retry" else "")

    assert result.status is Status.COMPLETED
    assert result.state["count"] == count_
    assert len(bench.agent.prompts) == (3 if choice == "retry" else 2)


async def test_without_a_question_a_bad_answer_fails_the_attempt(bench: EngineFixture) -> None:
    """The step's own retries and escalation take over, with the problem as feedback."""

    async def work(ctx: StepContext) -> Work:
        checked = await ctx.ask("claude", f"{ctx.feedback or 'How many?'}", read=number, retries=0)
        return OK, {"count": checked.value}

    bench.agent.on("How many?", "many").on("not a number; it has 4 characters", "7")

    result = await bench.start(one_step(work))

    assert result.state == {"count": 7}


async def test_a_usable_answer_counts_when_retries_did_not_help(bench: EngineFixture) -> None:
    """Minor problems are worth a retry and no human."""

    def read(reply: Reply) -> str:
        raise AgentBadOutput("a bit long", value=reply.text, usable=True)

    async def work(ctx: StepContext) -> Work:
        checked = await ctx.ask("claude", "Write.", read=read, otherwise=ASK)
        return OK, {"text": checked.value, "problems": list(checked.problems)}

    bench.agent.on("", "Once upon a time")

    result = await bench.start(one_step(work))

    assert result.state == {"text": "Once upon a time", "problems": ["a bit long"]}
    assert len(bench.agent.prompts) == 2


async def test_what_a_human_is_asked_can_depend_on_the_answer(bench: EngineFixture) -> None:
    """A human decides about what was answered, so it has to be in the question."""

    def unusable(last: CheckedReply[int]) -> Request:
        return Choice(f"Wrong: {'; '.join(last.problems)}", ["zero"], question_id="count")

    async def work(ctx: StepContext) -> Work:
        await ctx.ask("claude", "How many?", read=number, otherwise=Otherwise(unusable, "bad"))
        return OK, {}

    bench.agent.on("", "many")

    result = await bench.start(one_step(work))

    assert result.inbox[0].prompt == "Wrong: not a number; it has 4 characters"
    assert result.inbox[0].effect == "bad#1"


async def item(ctx: StepContext, name: str) -> str:
    reply = await ctx.ask("claude", name)
    if reply.text == "bad":
        raise StepFailed(f"{name} is bad")
    return reply.text


async def fan(ctx: StepContext) -> Work:
    ask = Choice("Some failed.", ["retry", "leave out"])
    results = await ctx.map(["a", "b"], item, key="items", retries=1, otherwise=ask)
    return OK, {"results": [None if isinstance(each, Failure) else each for each in results]}


@pytest.mark.parametrize(("choice", "second"), [("retry", "B"), ("leave out", None)])
async def test_a_human_decides_about_failed_items_and_the_others_are_not_lost(
    bench: EngineFixture, choice: str, second: str | None
) -> None:
    """A thousand finished items must not be worked again for one that failed."""
    answers = iter(["bad", "bad", "B"])
    bench.agent.on("b", lambda _request: next(answers)).on("a", "A")
    workflow = one_step(fan)
    waiting = await bench.start(workflow)

    bench.answer(choice)
    result = await bench.resume(workflow)

    assert [each.effect for each in waiting.inbox] == ["otherwise#1"]
    assert result.state == {"results": ["A", second]}
    assert bench.agent.prompts.count("a") == 1


async def test_what_an_operator_must_fix_is_no_question_about_items(bench: EngineFixture) -> None:
    """Running the items again does not help while, for example, the database is down."""

    async def unreachable(_ctx: StepContext, _name: str) -> str:
        raise UsageError("there is no database")

    async def work(ctx: StepContext) -> Work:
        await ctx.map(["a"], unreachable, otherwise=Choice("Failed.", ["retry", "leave out"]))
        return OK, {}

    result = await bench.start(one_step(work))

    assert result.status is Status.FAILED
    assert "there is no database" in result.reason


async def test_another_attempt_knows_the_answers_of_the_one_before_and_no_others(
    bench: EngineFixture,
) -> None:
    """A handler can show an agent what it got wrong; the feedback stays the bare problem."""
    seen: list[tuple[dict[str, str], str | None]] = []

    async def work(ctx: StepContext) -> Work:
        seen.append((dict(ctx.previous_answers), ctx.feedback))
        await ctx.ask("claude", f"Write {ctx.attempt}.", key="draft")
        if ctx.attempt < 3:
            raise StepFailed(f"bad {ctx.attempt}")
        return OK, {}

    bench.agent.on("Write 1.", "one").on("Write 2.", "two").on("", "three")
    workflow = one_step(work)
    result = await bench.answered(workflow, "retry", "again")

    assert result.status is Status.COMPLETED, result.reason
    assert seen == [
        ({}, None),
        ({"draft": "one"}, "bad 1"),
        ({"draft": "two"}, "bad 2\nA human wrote: again"),
    ]


async def test_an_answer_that_does_not_fit_its_schema_is_quoted_in_the_retry(
    bench: EngineFixture,
) -> None:
    """It is the most common fault, and without the answer the problems refer to nothing."""

    async def work(ctx: StepContext) -> Work:
        schema = {"type": "object", "required": ["count"]}
        checked = await ctx.ask("claude", "Count.", schema=schema, read=lambda reply: reply.value)
        await ctx.wait(Question("Good?"))
        return OK, {"value": checked.value}

    bench.agent.on("not accepted", {"count": 1}).on("", '{"cuont": 1}')
    workflow = one_step(work)
    result = await bench.answered(workflow)

    assert result.state == {"value": {"count": 1}}
    _first, second = bench.agent.prompts
    assert '{"cuont": 1}' in second
    assert "required property" in second


async def test_a_text_answer_to_a_schema_of_signoff_is_left_to_the_reader(
    bench: EngineFixture,
) -> None:
    """The reader knows the text form as well, so a second call would be wasted."""
    prompt = ProductPrompt("How many?", schema={"type": "object"})

    async def work(ctx: StepContext) -> Work:
        checked = await ctx.ask("claude", prompt, read=number)
        return OK, {"count": checked.value}

    bench.agent.on("", "7")

    result = await bench.start(one_step(work))

    assert result.state == {"count": 7}
    assert len(bench.agent.prompts) == 1
