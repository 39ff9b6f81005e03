import asyncio
import itertools
import sys
from typing import Any

import pytest

from signoff.core import events as ev
from signoff.core.context import Failure, StepContext
from signoff.core.errors import AgentAuth, AgentError, StepFailed
from signoff.core.outcome import Status
from signoff.core.requests import Question
from tests.unit.runtime.engine_fixture import OK, EngineFixture, Work, one_step, only

TOPICS = ["cats", "dogs", "fish"]


async def write(ctx: StepContext, topic: str) -> str:
    reply = await ctx.ask("claude", f"Write about {topic}. {ctx.feedback or ''}")
    return reply.text


def fan(handler: Any = write, items: Any = TOPICS, **options: Any) -> Any:
    async def work(ctx: StepContext) -> Work:
        texts = await ctx.map(items, handler, key="topics", **options)
        return OK, {"texts": [t if not isinstance(t, Failure) else t.error for t in texts]}

    return one_step(work)


def answers(bench: EngineFixture) -> None:
    for topic in TOPICS:
        bench.agent.on(topic, f"on {topic}")


async def test_results_come_in_the_order_of_the_items(bench: EngineFixture) -> None:
    """Whichever is ready first, the third result belongs to the third item."""

    async def late(_ctx: StepContext, n: int) -> int:
        for _ in range(10 - n):
            await asyncio.sleep(0)
        return n * n

    result = await bench.start(fan(late, range(10)))

    assert result.state == {"texts": [n * n for n in range(10)]}


async def test_no_more_items_run_at_once_than_allowed(bench: EngineFixture) -> None:
    """An agent on this machine may only manage two."""
    answers(bench)
    bench.agent.on("Write", "else")
    running: list[int] = []

    async def item(ctx: StepContext, n: int) -> int:
        running.append(n)
        most.append(len(running))
        for _ in range(3):
            await asyncio.sleep(0)
        running.remove(n)
        return n

    most: list[int] = []

    result = await bench.start(fan(item, range(7), concurrency=2))

    assert result.ok
    assert max(most) == 2


async def test_a_failed_item_leaves_its_siblings_work_alone(bench: EngineFixture) -> None:
    """Seven good critiques are worth keeping when the eighth fails."""
    bench.agent.on("dogs", AgentAuth("not logged in"), "on dogs").on("cats", "on cats")
    bench.agent.on("fish", "on fish")
    workflow = fan()

    failed = await bench.start(workflow)
    result = await bench.resume(workflow)

    assert failed.status is Status.FAILED
    assert "1 of 3 items of 'topics' failed" in failed.reason
    assert "not logged in" in failed.reason
    assert result.state == {"texts": ["on cats", "on dogs", "on fish"]}
    asked = [prompt.split()[2] for prompt in bench.agent.prompts]
    assert sorted(asked) == ["cats.", "dogs.", "dogs.", "fish."]


async def test_a_failed_item_keeps_the_calls_that_succeeded(bench: EngineFixture) -> None:
    """Of an item with two calls, only the failed one is paid for again."""

    async def item(ctx: StepContext, topic: str) -> str:
        draft = await ctx.ask("claude", f"Draft {topic}", key="draft")
        final = await ctx.ask("claude", f"Polish {draft.text}", key="polish")
        return final.text

    bench.agent.on("Draft", "d").on("Polish d", AgentError("broken pipe"), "final")
    workflow = fan(item, ["cats"])

    await bench.start(workflow)
    result = await bench.resume(workflow)

    assert result.state == {"texts": ["final"]}
    assert bench.agent.prompts == ["Draft cats", "Polish d", "Polish d"]


async def test_an_item_that_fell_short_is_tried_again_alone_and_knows_why(
    bench: EngineFixture,
) -> None:
    """The same retry with feedback a step has, for one of a hundred items."""

    async def item(ctx: StepContext, topic: str) -> str:
        text = await write(ctx, topic)
        if len(text) < 5:
            raise StepFailed("too short")
        return text

    bench.agent.on("dogs. too short", "on dogs").on("dogs", "dog").on("Write", "long enough")

    result = await bench.start(fan(item, retries=1))

    assert result.state == {"texts": ["long enough", "on dogs", "long enough"]}
    assert len(bench.agent.prompts) == 4


async def test_an_items_attempts_are_bounded_and_a_resume_grants_new_ones(
    bench: EngineFixture,
) -> None:
    """A hopeless item uses its retries once; a resume grants them again."""
    tries: list[int] = []

    async def item(ctx: StepContext, topic: str) -> str:
        tries.append(ctx.attempt)
        if len(tries) < 5:
            raise StepFailed("no luck")
        return "finally"

    workflow = fan(item, ["cats"], retries=1)

    await bench.start(workflow)
    assert tries == [1, 2]
    await bench.resume(workflow)
    assert tries == [1, 2, 3, 4]
    result = await bench.resume(workflow)

    assert result.state == {"texts": ["finally"]}


async def test_an_answer_for_one_item_grants_a_failed_one_nothing(bench: EngineFixture) -> None:
    """A hopeless item would else be tried again with every answer its siblings get."""
    tries: list[int] = []

    async def item(ctx: StepContext, topic: str) -> str:
        if topic == "cats":
            return str((await ctx.wait(Question("how?"))).value)
        tries.append(ctx.attempt)
        raise StepFailed("no luck")

    workflow = fan(item, ["cats", "dogs"], retries=1, on_failure="keep")
    result = await bench.answered(workflow, "so")

    assert tries == [1, 2]
    assert result.state["texts"][0] == "so"
    assert "no luck" in result.state["texts"][1]


async def test_a_returned_failure_is_the_same_on_every_replay(bench: EngineFixture) -> None:
    """The handler went on from it; tried again it might succeed, and the past would be another."""

    async def work(ctx: StepContext) -> Work:
        found = await ctx.map(TOPICS, write, key="topics", on_failure="keep")
        failures = [each for each in found if isinstance(each, Failure)]
        answer = await ctx.wait(Question(f"{failures} failed. Continue?"))
        return OK, {"reply": answer.value, "failed": [f.index for f in failures]}

    bench.agent.on("dogs", AgentAuth("not logged in"), "on dogs").on("Write", "fine")
    workflow = one_step(work)

    result = await bench.answered(workflow)

    assert result.state == {"reply": "yes", "failed": [1]}
    assert len(bench.agent.prompts) == 3


def bug(topic: str) -> str:
    return {"cats": "x", "fish": "y"}[topic]


def leave(topic: str) -> str:
    return sys.exit(0) if topic == "dogs" else topic


@pytest.mark.parametrize(
    ("does", "reason"), [(bug, "KeyError: 'dogs'"), (leave, "SystemExit: 0")], ids=["bug", "exit"]
)
async def test_whatever_one_item_raises_is_that_items_failure(
    bench: EngineFixture, does: Any, reason: str
) -> None:
    """It must neither end the program nor lose its siblings' work."""
    result = await bench.start(fan(lambda _ctx, topic: does(topic)))

    assert result.status is Status.FAILED
    assert reason in result.reason
    assert len(bench.events(ev.ItemFinished)) == 2


async def test_an_item_that_swallows_its_wait_still_waits(bench: EngineFixture) -> None:
    """A bare `except:` must not record an item as finished without its answer."""

    async def item(ctx: StepContext, topic: str) -> str:
        try:
            return str((await ctx.wait(Question(f"{topic}?"))).value)
        except BaseException:  # noqa: BLE001  # the mistake this is about
            return "not asked"

    workflow = fan(item, ["cats"])
    result = await bench.start(workflow)

    assert result.status is Status.WAITING
    bench.answer("yes")
    assert (await bench.resume(workflow)).state == {"texts": ["yes"]}


async def test_a_result_that_cannot_be_stored_says_what_to_return(bench: EngineFixture) -> None:
    """Returning the whole reply is the first thing most users try."""

    async def item(ctx: StepContext, topic: str) -> Any:
        return await ctx.ask("claude", topic)

    answers(bench)

    result = await bench.start(fan(item))

    assert result.status is Status.FAILED
    assert "Reply" in result.reason
    assert ".text or .value" in result.reason


async def test_a_fan_out_over_something_else_on_replay_is_noticed(bench: EngineFixture) -> None:
    """The third result would be taken for the third of other items."""
    items = [["a", "b"], ["b", "a"]]

    async def work(ctx: StepContext) -> Work:
        await ctx.map(items[0], lambda _ctx, x: x, key="letters")
        await ctx.wait(Question("Good?"))
        return OK, {}

    workflow = one_step(work)
    await bench.start(workflow)
    items.reverse()
    bench.answer("yes")

    result = await bench.resume(workflow)

    assert "not deterministic" in result.reason
    assert "'letters'" in result.reason


# People


async def ask_about(ctx: StepContext, topic: str) -> str:
    draft = await ctx.ask("claude", f"Write about {topic}.")
    answer = await ctx.wait(Question(f"Is {draft.text!r} good?"))
    return f"{draft.text}: {answer.value}"


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
async def test_items_are_answered_in_any_order_with_restarts_between(
    bench: EngineFixture, order: tuple[int, ...]
) -> None:
    """People answer when they can, and nothing is asked or paid for twice meanwhile."""
    answers(bench)
    workflow = fan(ask_about)
    inbox = (await bench.start(workflow)).inbox
    result = None

    for count, position in enumerate(order, 1):
        bench.answer(f"yes {position}", number=inbox[position].id)
        result = await bench.resume(workflow)
        assert len(result.inbox) == 3 - count

    assert result is not None
    assert result.state == {"texts": [f"on {t}: yes {n}" for n, t in enumerate(TOPICS)]}
    assert len(bench.agent.prompts) == 3


async def test_an_item_that_still_waits_is_not_run_again(bench: EngineFixture) -> None:
    """Answering a thousand items one by one would otherwise be a million runs of the handler."""
    runs: list[str] = []

    async def item(ctx: StepContext, topic: str) -> str:
        runs.append(topic)
        return str((await ctx.wait(Question(topic))).value)

    workflow = fan(item)
    inbox = (await bench.start(workflow)).inbox
    bench.answer("yes", number=inbox[1].id)

    await bench.resume(workflow)

    assert runs == ["cats", "dogs", "fish", "dogs"]


async def test_an_item_asks_a_second_question_after_the_first_is_answered(
    bench: EngineFixture,
) -> None:
    """Each item is a conversation of its own."""

    async def item(ctx: StepContext, topic: str) -> str:
        first = await ctx.wait(Question(f"{topic}: what?"), key="what")
        second = await ctx.wait(Question(f"{first.value}: why?"), key="why")
        return f"{first.value} because {second.value}"

    workflow = fan(item, ["cats", "dogs"])
    inbox = (await bench.start(workflow)).inbox
    bench.answer("purring", number=inbox[0].id)

    after = await bench.resume(workflow)

    assert [i.prompt for i in after.inbox] == ["dogs: what?", "purring: why?"]


async def test_a_waiting_item_does_not_hide_a_failed_one(bench: EngineFixture) -> None:
    """When the answer is in, the failed item is tried again, and only that."""
    bench.agent.on("dogs", AgentError("broken pipe"), "on dogs")
    runs: list[str] = []

    async def item(ctx: StepContext, topic: str) -> str:
        runs.append(topic)
        if topic == "cats":
            return str((await ctx.wait(Question("Cats?"))).value)
        return (await ctx.ask("claude", topic)).text

    workflow = fan(item, ["cats", "dogs"])

    result = await bench.answered(workflow)

    assert result.state == {"texts": ["yes", "on dogs"]}
    assert runs == ["cats", "dogs", "cats", "dogs"]


# Nesting


async def test_fan_outs_nest_and_a_failure_deep_inside_is_retried_alone(
    bench: EngineFixture,
) -> None:
    """One paragraph of a book failed; the book is not written again."""

    async def paragraph(ctx: StepContext, name: str) -> str:
        return (await ctx.ask("claude", name)).text

    async def chapter(ctx: StepContext, names: list[str]) -> str:
        return "+".join(await ctx.map(names, paragraph, key="paragraphs"))

    bench.agent.on("b", AgentError("broken pipe"), "B")
    bench.agent.on("", lambda request: request.prompt.upper())
    workflow = fan(chapter, [["a", "b"], [], ["c"]])

    await bench.start(workflow)
    result = await bench.resume(workflow)

    assert result.state == {"texts": ["A+B", "", "C"]}
    assert {call.effect for call in bench.agent.calls} == {
        "topics#1[0]/paragraphs#1[0]/ask#1",
        "topics#1[0]/paragraphs#1[1]/ask#1",
        "topics#1[2]/paragraphs#1[0]/ask#1",
    }
    assert bench.agent.prompts == ["a", "b", "c", "b"]


async def test_an_answer_that_an_item_no_longer_asks_for_does_not_keep_the_run_awake(
    bench: EngineFixture,
) -> None:
    """Work that was done before a crash is found done; its answer must not fail later waits."""
    done: list[str] = []

    async def once(ctx: StepContext, topic: str) -> str:
        if not done:
            await ctx.wait(Question(f"Is {topic} done?"))
        return topic

    async def work(ctx: StepContext) -> Work:
        await ctx.map(["cats"], once, key="topics")
        answer = await ctx.wait(Question("What next?"))
        return OK, {"next": answer.value}

    workflow = one_step(work)
    await bench.start(workflow)
    done.append("cats")
    bench.answer("yes")
    second = await bench.resume(workflow)
    bench.answer("dogs", number=only(second.inbox).id)

    assert second.status is Status.WAITING
    assert (await bench.resume(workflow)).state == {"next": "dogs"}
