"""What was failing when a run stopped is known to the human or program that resumes it."""

from typing import Any

import signoff
from signoff.contracts import ParallelItemResult, PendingRetry, StepContext, define_workflow
from signoff.core.outcome import Status
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.runtime.result import RunResult
from signoff.store.sqlite import MemoryStore


def flow(*steps: dict[str, Any]) -> Workflow:
    return define_workflow({"type": "t", "steps": list(steps)})


async def play(workflow: Workflow, store: MemoryStore) -> RunResult:
    async with Engine(store) as engine:
        return await engine.start(workflow, name="run")


def stop_at(attempt: int, engine_box: list[Engine]) -> Any:
    """Returns a command that stops the run in an attempt."""

    async def command(ctx: StepContext) -> dict[str, Any]:
        if ctx.attempt == attempt:
            engine_box[0].interrupt("stopped")
            await ctx.run(["sleep", "60"])
        return {"n": ctx.attempt}

    return command


async def test_a_run_that_stopped_during_a_retry_reports_the_real_error() -> None:
    """The human who resumes it sees what is going on before it continues."""
    store = MemoryStore()
    box: list[Engine] = []
    checks = [{"name": "third", "check": "result.n > 2", "error": "too early"}]
    workflow = flow(
        {"name": "first", "command": lambda _ctx: {"a": 1}, "next": "second"},
        {"name": "second", "command": stop_at(2, box), "postconditions": checks},
    )

    async with Engine(store) as engine:
        box.append(engine)
        result = await engine.start(workflow, name="run")
    context = signoff.resume_context("run", store=store)

    assert result.status is Status.INTERRUPTED
    assert context.pending_retry == PendingRetry("second", "too early", 2)
    assert (context.current_step, context.completed_steps) == ("second", ("first",))
    assert context.last_step_output == {"a": 1}
    assert context.is_retry
    assert "attempt 2; the last one failed: too early" in context.lines[0]
    assert context.facts["pending_retry"]["error"] == "too early"


async def test_items_are_pending_completed_or_failed_while_their_step_is_under_way() -> None:
    """A thousand items run for hours."""
    store = MemoryStore()

    def one(ctx: StepContext) -> dict[str, Any]:
        return {"n": 1 if ctx.item == "good" else 0}

    checks = [{"name": "some", "check": "result.n > 0", "error": "there are none"}]
    workflow = flow(
        {"name": "list", "command": lambda _ctx: {"all": ["good", "bad"]}, "next": "each"},
        {
            "name": "each",
            "command": one,
            "parallel": True,
            "parallel_key": "all",
            "postconditions": checks,
        },
    )

    waiting = await play(workflow, store)
    context = signoff.resume_context("run", store=store)
    signoff.answer(waiting.inbox[0], "leave out", by="ann", store=store)
    async with Engine(store) as engine:
        done = await engine.resume("run", workflow)

    assert context.parallel_status == {"total": 2, "completed": 1, "failed": ["1:bad"]}
    assert context.parallel_results == {
        "0:good": ParallelItemResult("completed", {"n": 1}),
        "1:bad": ParallelItemResult("failed", error="there are none", retry_count=2),
    }
    assert "item 1:bad (failed, failed attempts: 2): there are none" in context.lines
    assert done.state["_items"]["1:bad"] == {
        "status": "failed", "error": "there are none", "retry_count": 2,
    }  # fmt: skip
    assert signoff.resume_context("run", store=store) is None


async def test_the_failed_attempts_of_items_are_counted_across_retries_of_a_human() -> None:
    """The checkpoint has the real number, however often it was tried."""
    store = MemoryStore()

    def one(ctx: StepContext) -> dict[str, Any]:
        return {"n": ctx.attempt}

    checks = [{"name": "late", "check": "result.n >= ctx.item", "error": "too early"}]
    workflow = flow(
        {"name": "list", "command": lambda _ctx: {"all": [1, 2, 4, 9]}, "next": "each"},
        {"name": "each", "command": one, "parallel": True, "parallel_key": "all",
         "postconditions": checks, "next": "after"},
        {"name": "after", "command": lambda ctx: {
            "counts": [each.retry_count for each in ctx.checkpoint.parallel_results.values()]}},
    )  # fmt: skip

    result = await play(workflow, store)
    for decision in ("retry", "leave out"):
        signoff.answer(result.inbox[0], decision, by="ann", store=store)
        async with Engine(store) as engine:
            result = await engine.resume("run", workflow)

    assert result.state["counts"] == [0, 1, 3, 4]


async def test_a_run_without_failures_has_nothing_to_report() -> None:
    """There is nothing to act on."""
    store = MemoryStore()
    gate = {"prompt": "Well?", "options": [{"label": "a", "ends": "completed"}]}

    await play(flow({"name": "gate", "human_gate": gate}), store)
    context = signoff.resume_context("run", store=store)

    assert (context.pending_retry, context.parallel_status) == (None, None)
    assert (context.lines, context.last_step_output, context.is_retry) == ([], None, False)
