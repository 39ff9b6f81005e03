import asyncio
from typing import Any

import pytest

from signoff.core.context import StepContext
from signoff.core.delta import Append
from signoff.core.errors import AgentBadOutput, StepFailed, WriteFailed
from signoff.core.outcome import End, Outcome, Status
from signoff.core.requests import Question
from signoff.core.spend import Limits
from signoff.core.step import Condition, Edge, Gate, GateOption, StepDef
from signoff.core.workflow import Workflow
from tests.patience import PATIENCE_SECONDS, SkippingLoop
from tests.unit.runtime.engine_fixture import OK, EngineFixture, Work, chain, one_step, only


async def test_a_chain_runs_to_its_end_and_returns_the_results_of_its_steps(
    bench: EngineFixture,
) -> None:
    """The main road: if this fails nothing works."""

    async def draft(ctx: StepContext) -> Work:
        reply = await ctx.ask("claude", "Write.")
        return OK, {"draft": reply.text}

    def polish(ctx: StepContext) -> Work:
        return OK, {"final": ctx.step_state["draft"].upper()}

    bench.agent.on("Write.", "hello")

    result = await bench.start(chain(draft, polish))

    assert result.ok
    assert (result.status, result.outcome) == (Status.COMPLETED, OK)
    assert result.state == {"draft": "hello", "final": "HELLO"}
    assert result.spend.calls == 1


async def test_a_precondition_stops_the_run_before_its_handler_and_is_checked_on_a_resume(
    bench: EngineFixture,
) -> None:
    """Work on top of missing input is paid for and thrown away; once it is there, it goes on."""
    there: list[str] = []
    calls: list[str] = []

    def work(ctx: StepContext) -> Work:
        calls.append("worked")
        return OK, {}

    ready = Condition("file is there", lambda _ctx: bool(there), "the file is missing")
    workflow = one_step(work, preconditions=[ready])

    failed = await bench.start(workflow)
    there.append("file")

    assert (failed.status, calls) == (Status.FAILED, [])
    assert "the file is missing" in failed.reason
    assert (await bench.resume(workflow)).ok


# Conditions


async def test_a_precondition_that_held_is_not_checked_again_after_a_wait(
    bench: EngineFixture,
) -> None:
    """The handler itself may have changed what it needed; the visit has started."""
    checks: list[int] = []

    async def work(ctx: StepContext) -> Work:
        await ctx.wait(Question("Continue?"))
        return OK, {}

    def counted(_ctx: StepContext) -> bool:
        checks.append(1)
        return len(checks) == 1

    workflow = one_step(work, preconditions=[Condition("once", counted, "not again")])
    await bench.start(workflow)
    bench.answer("yes")

    assert (await bench.resume(workflow)).ok
    assert len(checks) == 1


@pytest.mark.parametrize("value", [1, "yes", None, [True]])
async def test_a_condition_holds_only_when_it_says_true(bench: EngineFixture, value: Any) -> None:
    """A check that returns an object by mistake must not let everything through."""
    sloppy = Condition("sloppy", lambda _ctx: value, "not true")

    result = await bench.start(one_step(None, preconditions=[sloppy]))

    assert result.status is Status.FAILED


async def test_a_condition_that_raises_is_broken_and_says_why(bench: EngineFixture) -> None:
    """A check that raises has not passed."""
    broken = Condition("reads state", lambda ctx: ctx.step_state["x"] == 1, "x must be 1")

    result = await bench.start(one_step(None, preconditions=[broken]))

    assert result.status is Status.FAILED
    assert "x must be 1" in result.reason
    assert "KeyError" in result.reason


async def test_a_postcondition_sees_what_the_handler_returned(bench: EngineFixture) -> None:
    """A check of the result needs the result, also when it is the same as last time."""
    seen: list[Any] = []

    def work(ctx: StepContext) -> Work:
        outcome = OK if ctx.visit == 2 else Outcome.ITERATE
        return outcome, {"draft": "same", "log": Append([ctx.visit])}

    def look(ctx: StepContext) -> bool:
        seen.append((ctx.result["draft"], ctx.step_state["draft"], list(ctx.step_state["log"])))
        return True

    step = StepDef(
        "work",
        handler=work,
        next={OK: None, Outcome.ITERATE: "work"},
        postconditions=[Condition("look", look, "never")],
    )

    await bench.start(Workflow("flow", step))

    assert seen == [("same", "same", [1]), ("same", "same", [1, 2])]


# Retry with feedback, then a human


def too_short(ctx: StepContext) -> bool:
    return len(ctx.result["draft"]) >= 5


LONG_ENOUGH = Condition("length", too_short, "the draft is too short")


async def write(ctx: StepContext) -> Work:
    reply = await ctx.ask("claude", f"Write. {ctx.feedback or ''}")
    return OK, {"draft": reply.text}


async def test_a_step_that_fell_short_is_tried_again_knowing_why(bench: EngineFixture) -> None:
    """The second prompt carries the reason, or the second answer is as bad as the first."""
    bench.agent.on("too short", "long enough").on("Write.", "abc")

    result = await bench.start(one_step(write, postconditions=[LONG_ENOUGH]))

    assert result.ok
    assert result.state == {"draft": "long enough"}
    assert "the draft is too short" in bench.agent.prompts[1]


async def test_a_failed_attempt_leaves_nothing_in_the_state(bench: EngineFixture) -> None:
    """What was not good enough must not be built upon."""

    def work(ctx: StepContext) -> Work:
        return OK, {"draft": "abc", "first": True} if ctx.attempt == 1 else {"draft": "abcde"}

    result = await bench.start(one_step(work, postconditions=[LONG_ENOUGH]))

    assert result.state == {"draft": "abcde"}


@pytest.mark.parametrize(
    ("answer", "draft", "calls"),
    [(("retry", "make it a poem"), "a long poem", 4), (("accept", ""), "abc", 3)],
)
async def test_when_attempts_are_used_up_a_human_decides(
    bench: EngineFixture, answer: tuple[str, str], draft: str, calls: int
) -> None:
    """Neither a silent pass nor a dead end; what the person wrote is the next feedback."""
    workflow = one_step(write, retries=2, postconditions=[LONG_ENOUGH])
    bench.agent.on("a poem", "a long poem").on("Write.", "abc")

    waiting = await bench.start(workflow)
    bench.answer(*answer)
    result = await bench.resume(workflow)

    assert (waiting.status, waiting.state) == (Status.WAITING, {"draft": "abc"})
    assert "too short" in only(waiting.inbox).prompt
    assert result.ok
    assert result.state == {"draft": draft}
    assert len(bench.agent.prompts) == calls


@pytest.mark.parametrize("error", [StepFailed("not good"), AgentBadOutput("no JSON")])
async def test_a_handler_that_says_it_fell_short_is_tried_again(
    bench: EngineFixture, error: Exception
) -> None:
    """A reply that does not parse gets one more try with the error as feedback."""

    def work(ctx: StepContext) -> Work:
        if ctx.attempt == 1:
            raise error
        return OK, {"feedback": ctx.feedback}

    result = await bench.start(one_step(work))

    assert result.state == {"feedback": str(error)}


# Errors


async def test_a_handler_that_raises_fails_the_run_and_a_resume_works_it_again(
    bench: EngineFixture,
) -> None:
    """The bug is fixed and the run continues; nothing that was paid for is lost."""
    broken = ["yes"]

    async def work(ctx: StepContext) -> Work:
        reply = await ctx.ask("claude", "Write.")
        if broken:
            raise KeyError("mistyped")
        return OK, {"draft": reply.text}

    bench.agent.on("Write.", "hello")
    workflow = one_step(work)

    failed = await bench.start(workflow)
    broken.clear()
    result = await bench.resume(workflow)

    assert failed.status is Status.FAILED
    assert "KeyError" in failed.reason
    assert "'work'" in failed.reason
    assert result.ok
    assert len(bench.agent.prompts) == 1


async def test_an_error_goes_where_on_error_says(bench: EngineFixture) -> None:
    """The author foresaw it; the next step reads what went wrong."""

    def work(_ctx: StepContext) -> Work:
        raise RuntimeError("no network")

    def repair(ctx: StepContext) -> Work:
        return OK, {"texts": ctx.step_state["_error"]["message"]}

    result = await bench.start(
        Workflow(
            "flow",
            StepDef("work", handler=work, next={OK: None}, on_error="repair"),
            StepDef("repair", handler=repair, next={OK: None}),
        )
    )

    assert result.ok
    assert "no network" in result.state["texts"]
    assert result.state["_error"]["step"] == "work"


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        (None, "must return (Outcome, dict)"),
        ((Outcome.DEFAULT, {}), "must return (Outcome, dict)"),
        ((Outcome.SKIP, {"a": 1}), "its edges: ok"),
        ((OK, {"_reason": 3}), "_reason"),
        *(
            ((OK, {"good": 1, "bad": bad}), "'bad'")
            for bad in (object(), {1, 2}, {1: "a"}, float("nan"), b"bytes")
        ),
    ],
)
async def test_what_a_handler_must_not_return_fails_the_run_and_is_not_recorded(
    bench: EngineFixture, returned: Any, problem: str
) -> None:
    """Going on would be a guess, and half an event would make the whole run unreadable."""
    result = await bench.start(one_step(lambda _ctx: returned))

    assert result.status is Status.FAILED
    assert problem in result.reason
    assert [each.tag for each in bench.events()] == ["run_started", "run_stopped"]


async def test_a_handler_cannot_change_the_state_in_place(bench: EngineFixture) -> None:
    """The journal would know nothing of it."""

    def first(_ctx: StepContext) -> Work:
        return OK, {"items": [1]}

    def second(ctx: StepContext) -> Work:
        ctx.step_state["items"].append(2)
        return OK, {}

    result = await bench.start(chain(first, second))

    assert result.status is Status.FAILED
    assert "read-only" in result.reason


# Time


async def test_an_async_handler_that_takes_too_long_fell_short(
    bench: EngineFixture, loop: SkippingLoop
) -> None:
    """A hung call must not hang the run; a second try may be quicker."""

    async def work(ctx: StepContext) -> Work:
        if ctx.attempt == 1:
            await loop.hang()
        return OK, {"feedback": ctx.feedback}

    result = await bench.start(one_step(work, timeout=60))

    assert result.ok
    assert "took longer than 60 seconds" in result.state["feedback"]


async def test_a_plain_handler_that_takes_too_long_is_left_behind(
    bench: EngineFixture, loop: SkippingLoop
) -> None:
    """An ordinary function cannot be stopped, but the run need not wait for it."""
    left: list[int] = []

    def work(ctx: StepContext) -> Work:
        if ctx.attempt == 1:
            loop.block()
            left.append(ctx.attempt)
        return OK, {"attempt": ctx.attempt}

    result = await bench.start(one_step(work, timeout=60))

    assert result.state == {"attempt": 2}
    assert left == []


def plain(_ctx: StepContext) -> Work:
    return OK, {}


@pytest.fixture(params=["plain", "async"])
def slow(request: pytest.FixtureRequest, loop: SkippingLoop) -> Condition:
    """A condition that takes too long."""

    def too_slow(_ctx: StepContext) -> bool:
        loop.block()
        return True

    async def never_ends(_ctx: StepContext) -> bool:
        await loop.hang()
        return True

    check = too_slow if request.param == "plain" else never_ends
    return Condition("slow", check, "it is not fine")


async def test_a_condition_that_takes_too_long_does_not_hold(
    bench: EngineFixture, slow: Condition
) -> None:
    """A check that hung blocked the run forever, in spite of the step's timeout."""
    before = one_step(plain, timeout=60, preconditions=[slow])
    after = one_step(plain, timeout=60, postconditions=[slow])

    refused = await bench.start(before)
    waiting = await bench.engine.start(after, name="after")

    assert refused.status is Status.FAILED
    assert refused.reason == (
        "preconditions of step 'work' not met: step 'work' took longer than 60 seconds"
    )
    assert waiting.status is Status.WAITING
    assert "took longer than 60 seconds" in waiting.inbox[0].prompt


async def test_a_limit_on_time_cuts_an_ordinary_function_off(
    bench: EngineFixture, loop: SkippingLoop
) -> None:
    """One step of an hour would otherwise overrun a limit of a minute."""

    def work(_ctx: StepContext) -> Work:
        loop.block()
        return OK, {}

    result = await bench.start(one_step(work, limits=Limits(seconds=60)))

    assert result.status is Status.BUDGET


async def test_a_time_out_of_the_handlers_own_is_an_error_like_any_other(
    bench: EngineFixture,
) -> None:
    """Only the step's own time-out means that the step took too long."""

    async def work(_ctx: StepContext) -> Work:
        raise TimeoutError("a socket of mine")

    result = await bench.start(one_step(work, timeout=60))

    assert result.status is Status.FAILED
    assert "a socket of mine" in result.reason


async def test_a_limit_on_time_ends_the_run_by_name(bench: EngineFixture) -> None:
    """Wall time is money too."""

    async def work(_ctx: StepContext) -> Work:
        await asyncio.Event().wait()
        return OK, {}

    result = await bench.start(
        Workflow(
            "flow", StepDef("work", handler=work, next={OK: None}), limits=Limits(seconds=0.01)
        )
    )

    assert result.status is Status.BUDGET
    assert "0.01 seconds" in result.reason


async def test_a_limit_on_time_holds_for_steps_that_never_wait(bench: EngineFixture) -> None:
    """A chain of ordinary functions takes time like any other."""
    worked: list[str] = []

    def work(ctx: StepContext) -> Work:
        worked.append(ctx.step_id)
        bench.clock.advance(40)
        return OK, {}

    workflow = chain(work, work, work, work)

    result = await bench.engine.start(workflow, name="run", limits=Limits(seconds=60))

    assert result.status is Status.BUDGET
    assert worked == ["step1", "step2"]


# Gates


async def test_a_gate_shows_what_it_is_about_and_passes_on_what_a_human_writes(
    bench: EngineFixture,
) -> None:
    """A human cannot approve what is not displayed; a change request reaches the next attempt."""

    def draft(ctx: StepContext) -> Work:
        return OK, {"draft": f"draft {ctx.visit}: {ctx.feedback}"}

    options = (
        GateOption("yes", "publish"),
        GateOption("again", "draft", requires_input=True),
        GateOption("no", End.REJECTED),
    )
    workflow = Workflow(
        "flow",
        StepDef("draft", handler=draft, gate=Gate("Good?", options, ("draft",))),
        StepDef("publish", handler=plain, next={OK: None}),
    )
    waiting = await bench.start(workflow)
    bench.answer("again", "more jokes")
    result = await bench.resume(workflow)

    item = only(waiting.inbox)
    assert (waiting.status, item.kind, item.prompt) == (Status.WAITING, "choice", "Good?")
    assert "draft 1: None" in item.form
    assert result.status is Status.WAITING
    assert result.state["draft"] == "draft 2: more jokes"


async def test_a_gate_shows_a_list_the_step_has_added_to(bench: EngineFixture) -> None:
    """Showing the list without its newest entry would hide what is to be approved."""

    def work(ctx: StepContext) -> Work:
        return (OK if ctx.visit == 2 else Outcome.ITERATE), {"log": Append([f"entry {ctx.visit}"])}

    step = StepDef(
        "work", handler=work, next={Outcome.ITERATE: "work"}, gate=Gate("Good?", context=["log"])
    )

    result = await bench.start(Workflow("flow", step))

    form = only(result.inbox).form
    assert "entry 1" in form
    assert "entry 2" in form


# Loops and limits


def looping(**edge: Any) -> Workflow:
    def work(ctx: StepContext) -> Work:
        return Outcome.ITERATE, {"visits": ctx.visit}

    again = Edge("work", **edge)
    return Workflow("flow", StepDef("work", handler=work, next={Outcome.ITERATE: again, OK: None}))


async def test_at_a_limit_a_human_can_let_the_loop_continue(bench: EngineFixture) -> None:
    """The history is worth more than the bound."""
    workflow = looping(bound=2, on_limit="ask")
    first = await bench.start(workflow)

    bench.answer("continue")
    second = await bench.resume(workflow)

    assert (first.status, first.state["visits"]) == (Status.WAITING, 3)
    assert (second.status, second.state["visits"]) == (Status.WAITING, 5)


async def goes_on_without(ctx: StepContext) -> Any:
    asked = asyncio.ensure_future(ctx.wait(Question("Topic?")))
    await asyncio.wait([asked])
    return asked.result().value if asked.exception() is None else "nothing"


async def catches_everything(ctx: StepContext) -> Any:
    try:
        return (await ctx.wait(Question("Topic?"))).value
    except Exception:  # noqa: BLE001  # what the test is about
        return "swallowed"


async def gathers_errors(ctx: StepContext) -> Any:
    (found,) = await asyncio.gather(ctx.wait(Question("Topic?")), return_exceptions=True)
    return getattr(found, "value", "no answer")


@pytest.mark.parametrize("ask", [goes_on_without, catches_everything, gathers_errors])
async def test_however_a_handler_gets_past_its_own_request_it_waits_for_the_answer(
    bench: EngineFixture, ask: Any
) -> None:
    """`except Exception` around a wait is common, and must not stand for an approval."""

    async def work(ctx: StepContext) -> Work:
        return OK, {"topic": await ask(ctx)}

    workflow = one_step(work)

    waiting = await bench.start(workflow)
    bench.answer("cats")

    assert waiting.status is Status.WAITING
    assert (await bench.resume(workflow)).state == {"topic": "cats"}


# Coming to rest


async def test_a_wait_left_open_by_a_step_that_failed_is_withdrawn(bench: EngineFixture) -> None:
    """Users should not have to answer a question that no longer matters."""

    async def work(ctx: StepContext) -> Work:
        asked = asyncio.ensure_future(ctx.wait(Question("Any wishes?")))
        await asyncio.wait([asked])
        raise RuntimeError(f"no network, and no answer: {asked.exception()}")

    result = await bench.start(
        Workflow(
            "flow",
            StepDef("work", handler=work, next={OK: None}, on_error="repair"),
            StepDef("repair", next={OK: None}),
        )
    )

    assert result.ok
    assert bench.store.items("run") == []


async def in_gather(ctx: StepContext) -> Any:
    return await asyncio.gather(ctx.ask("claude", "Write."), ctx.wait(Question("Topic?")))


async def in_a_task_group(ctx: StepContext) -> Any:
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(_awaited(ctx.wait(Question("Topic?"))))
        drafted = group.create_task(_awaited(ctx.ask("claude", "Write.")))
    return drafted.result(), asked.result()


async def _awaited(effect: Any) -> Any:
    return await effect


@pytest.mark.parametrize("both", [in_gather, in_a_task_group])
async def test_a_branch_that_waits_does_not_cut_off_its_sibling(
    bench: EngineFixture, both: Any
) -> None:
    """The sibling's call is paid for, so its reply is recorded before the run rests."""

    async def work(ctx: StepContext) -> Work:
        reply, answer = await both(ctx)
        return OK, {"draft": reply.text, "topic": answer.value}

    bench.agent.on("Write.", lambda _request: _soon("hello"))
    workflow = one_step(work)

    result = await bench.answered(workflow, "cats")

    assert result.state == {"draft": "hello", "topic": "cats"}
    assert len(bench.agent.prompts) == 1


async def test_a_handler_that_fails_while_a_call_is_in_progress_does_not_lose_the_reply(
    bench: EngineFixture,
) -> None:
    """The call is paid for; the fixed handler gets its reply without another call."""
    broken = ["yes"]

    async def work(ctx: StepContext) -> Work:
        call = asyncio.ensure_future(ctx.ask("claude", "Write."))
        await asyncio.sleep(0)
        if broken:
            raise ValueError("a bug")
        return OK, {"draft": (await call).text}

    bench.agent.on("Write.", lambda _request: _soon("hello"))
    workflow = one_step(work)

    failed = await bench.start(workflow)
    broken.clear()
    result = await bench.resume(workflow)

    assert failed.status is Status.FAILED
    assert result.state == {"draft": "hello"}
    assert len(bench.agent.prompts) == 1


async def test_a_stop_at_the_moment_a_call_begins_ends_both(bench: EngineFixture) -> None:
    """However early a call is cut off, the run must not wait for it for ever."""

    async def work(ctx: StepContext) -> Work:
        if ctx.step_state.get("again"):
            return OK, {"draft": (await ctx.ask("claude", "Write.")).text}
        call = asyncio.ensure_future(ctx.ask("claude", "Write."))
        bench.engine.interrupt()
        await asyncio.Event().wait()
        return OK, {"draft": (await call).text}

    bench.agent.on("Write.", "hello")

    async with asyncio.timeout(PATIENCE_SECONDS):
        result = await bench.start(one_step(work))

    assert result.status is Status.INTERRUPTED


async def _soon(text: str) -> str:
    for _ in range(5):
        await asyncio.sleep(0)
    return text


class FullDisk:
    """A file port that refuses every file."""

    def write(self, run: str, path: str, text: str) -> None:
        raise WriteFailed(f"{path} cannot be written")


async def test_a_file_that_cannot_be_written_fails_the_run_and_can_be_tried_again() -> None:
    """Only a journal that cannot be written leaves the engine without a word to say."""
    bench = EngineFixture(files=FullDisk())

    async def work(ctx: StepContext) -> Work:
        await ctx.write("final/a.md", "text")
        return OK, {}

    result = await bench.start(one_step(work))

    assert (result.status, bench.store.row("run").owner) == (Status.FAILED, None)
    assert "cannot be written" in result.reason
    await bench.close()


# What an attempt that ran out of time leaves to the next


def slow_once(bench: EngineFixture, loop: SkippingLoop, prompt: str) -> None:
    """Lets an agent hang the first time it is asked this."""

    async def hang(_request: Any) -> str:
        await loop.hang()
        return ""

    bench.agent.on(prompt, hang, f"late {prompt}")


def asked(bench: EngineFixture) -> list[str]:
    return sorted(request.prompt for request in bench.agent.requests)


async def critic(ctx: StepContext, name: str) -> str:
    return (await ctx.ask("claude", name)).text


@pytest.mark.parametrize(
    ("retries", "again"),
    [(1, ["slow"]), (0, ["a", "b", "brief", "slow"])],
    ids=["by itself", "a human sends it back"],
)
async def test_a_late_step_keeps_what_it_had_finished_unless_a_human_sends_it_back(
    bench: EngineFixture, loop: SkippingLoop, retries: int, again: list[str]
) -> None:
    """One hung critic must not cost the others; a human's remark may concern any part."""

    async def reviewed(ctx: StepContext) -> Work:
        brief = (await ctx.ask("claude", "brief")).text
        return OK, {"texts": [brief, *await ctx.map(["a", "b", "slow"], critic)]}

    for prompt in ("brief", "a", "b"):
        bench.agent.on(prompt, prompt.upper())
    slow_once(bench, loop, "slow")
    flow = one_step(reviewed, timeout=60, retries=retries)

    result = await bench.start(flow)
    if result.status is Status.WAITING:
        bench.answer("retry")
        result = await bench.resume(flow)

    assert result.state == {"texts": ["BRIEF", "A", "B", "late slow"]}
    assert asked(bench) == sorted(["a", "b", "brief", "slow", *again])


async def test_a_late_step_that_then_asks_for_something_else_is_worked_from_its_top(
    bench: EngineFixture, loop: SkippingLoop
) -> None:
    """Its finished work was based on another prompt; all its retries are left."""
    tries: list[int] = []

    async def work(ctx: StepContext) -> Work:
        first = (await ctx.ask("claude", f"first, knowing {ctx.feedback}")).text
        tries.append(ctx.attempt)
        if len(tries) < 3:
            await loop.hang()
        return OK, {"texts": (await ctx.ask("claude", f"second after {first}")).text}

    bench.agent.on("first", lambda request: request.prompt)
    bench.agent.on("second", lambda request: request.prompt)

    result = await bench.start(one_step(work, timeout=60, retries=2))

    why = "step 'work' took longer than 60 seconds"
    assert result.state == {"texts": f"second after first, knowing {why}"}
    assert asked(bench).count("first, knowing None") == 1


async def test_items_are_worked_again_where_a_late_step_then_works_others(
    bench: EngineFixture, loop: SkippingLoop
) -> None:
    """The second item of another list is another item."""
    lists = [["a", "slow"], ["b", "c"]]

    async def work(ctx: StepContext) -> Work:
        return OK, {"texts": await ctx.map(lists[min(ctx.attempt, 2) - 1], critic)}

    for prompt in ("a", "b", "c"):
        bench.agent.on(prompt, prompt.upper())
    slow_once(bench, loop, "slow")

    result = await bench.start(one_step(work, timeout=60))

    assert result.state == {"texts": ["B", "C"]}


async def test_a_late_step_continues_from_everything_its_handler_had_received(
    bench: EngineFixture, loop: SkippingLoop
) -> None:
    """A handled failure and random numbers are part of the input of its items."""

    async def item(ctx: StepContext, words: str) -> str:
        return (await ctx.ask("claude", words)).text

    async def work(ctx: StepContext) -> Work:
        try:
            hint = (await ctx.ask("claude", "hint")).text
        except AgentBadOutput:
            hint = "none"
        number = ctx.random().randint(1, 10**9)
        texts = await ctx.map([f"a {hint} {number}", f"slow {hint} {number}"], item)
        return OK, {"texts": texts}

    bench.agent.on("hint", AgentBadOutput("no hint"), "H")
    bench.agent.on("a ", lambda request: request.prompt)
    slow_once(bench, loop, "slow")

    result = await bench.start(one_step(work, timeout=60))

    (first, second) = result.state["texts"]
    assert first.startswith("a none ")
    assert second == "late slow"
    prompts = asked(bench)
    assert len([prompt for prompt in prompts if prompt.startswith("a ")]) == 1
    assert {prompt.partition(" ")[2] for prompt in prompts if "none" in prompt} == {first[2:]}


async def test_a_sibling_that_hangs_does_not_hold_up_a_step_with_a_time_out(
    bench: EngineFixture, loop: SkippingLoop
) -> None:
    """The step has failed already; the other call was waited for without end."""

    async def work(ctx: StepContext) -> Work:
        await asyncio.gather(ctx.ask("claude", "hang", key="a"), ctx.ask("claude", "bad", key="b"))
        return OK, {}

    async def hang(_request: Any) -> str:
        await loop.hang()
        return ""

    bench.agent.on("hang", hang)
    bench.agent.on("bad", AgentBadOutput("nonsense"))

    result = await bench.start(one_step(work, timeout=60, retries=0))

    assert result.status is Status.WAITING
    assert "nonsense" in result.inbox[0].prompt


async def test_requests_to_humans_are_withdrawn_when_the_step_itself_needs_one(
    bench: EngineFixture, loop: SkippingLoop
) -> None:
    """The answer to it was of no use any more, and failed the run."""

    async def item(ctx: StepContext, name: str) -> str:
        if name == "slow":
            await loop.hang()
        return str((await ctx.wait(Question("Which tone?"))).value)

    async def work(ctx: StepContext) -> Work:
        return OK, {"texts": await ctx.map(["ask", "slow"], item)}

    result = await bench.start(one_step(work, timeout=60, retries=0))

    assert [each.prompt for each in result.inbox] == [
        "Step 'work' needs a decision: step 'work' took longer than 60 seconds"
    ]


async def test_a_changed_precondition_is_checked_before_anything_is_worked(
    bench: EngineFixture,
) -> None:
    """Under another definition the step started at its handler, and no human was asked."""

    def flow(words: str) -> Workflow:
        async def allowed(ctx: StepContext) -> bool:
            return bool((await ctx.wait(Question(words))).value == "yes")

        return one_step(plain, preconditions=[Condition("allowed", allowed, "not allowed")])

    await bench.start(flow("May I?"))

    result = await bench.resume(flow("May I deploy?"), adopt=True)

    assert result.status is Status.WAITING
    assert [each.prompt for each in result.inbox] == ["May I deploy?"]


async def test_a_plain_handler_that_runs_out_of_items_has_raised(bench: EngineFixture) -> None:
    """In a thread, `next()` of nothing was taken for a function that never returns."""

    def work(_ctx: StepContext) -> Work:
        return next(iter(list[Work]()))

    result = await bench.start(one_step(work, timeout=5))

    assert result.status is Status.FAILED
    assert "StopIteration" in result.reason
