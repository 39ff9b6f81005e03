import asyncio
import os
import threading
from queue import SimpleQueue

import pytest

from signoff.core import events as ev
from signoff.core.context import StepContext
from signoff.core.outcome import Status
from signoff.core.requests import Question
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime import handlers
from signoff.runtime.handlers import in_idle_thread, on_thread
from signoff.runtime.ports import Notice, Progress
from tests.patience import PATIENCE_SECONDS, SkippingLoop, wait_until
from tests.unit.runtime.engine_fixture import OK, EngineFixture, Work, one_step


async def test_the_time_that_a_thread_gets_is_recorded(bench: EngineFixture) -> None:
    """It has to be the same when the handler runs again."""

    def work(ctx: StepContext) -> Work:
        first = ctx.now()
        threads.append(threading.current_thread())
        if not broken:
            return OK, {"at": first.timestamp(), "chance": ctx.random().random()}
        broken.clear()
        raise ValueError("a bug")

    broken = ["yes"]
    threads: list[threading.Thread] = []
    workflow = one_step(work, timeout=60)
    began = bench.clock.now()

    await bench.start(workflow)
    bench.clock.advance(1000)
    result = await bench.resume(workflow)

    assert result.state["at"] == began
    assert 0 <= result.state["chance"] < 1
    assert threading.main_thread() not in threads


async def test_progress_from_a_thread_is_reported_on_the_loop() -> None:
    """Observers need not be safe for threads."""
    notices: list[tuple[Notice, threading.Thread]] = []

    class Watcher:
        def notice(self, notice: Notice) -> None:
            notices.append((notice, threading.current_thread()))

    def work(ctx: StepContext) -> Work:
        ctx.progress("half way")
        return OK, {}

    bench = EngineFixture(observers=[Watcher()])
    await bench.start(one_step(work, timeout=60))
    await bench.close()

    assert [type(notice) for notice, _ in notices].count(Progress) == 1
    assert {thread for _, thread in notices} == {threading.main_thread()}


async def test_a_handler_left_behind_adds_nothing_to_what_comes_after_it(
    bench: EngineFixture, loop: SkippingLoop
) -> None:
    """Its attempt is over, so what it still returns is ignored."""
    ended = threading.Event()

    def slow(ctx: StepContext) -> Work:
        if ctx.attempt == 1:
            loop.block()
            try:
                ctx.now()
            finally:
                ended.set()
        return OK, {}

    async def after(ctx: StepContext) -> Work:
        loop.end()
        await asyncio.to_thread(ended.wait, PATIENCE_SECONDS)
        await ctx.wait(Question("Good?"))
        return OK, {}

    workflow = Workflow(
        "flow",
        StepDef("slow", handler=slow, next={OK: "after"}, timeout=60),
        StepDef("after", handler=after, next={OK: None}),
    )

    result = await bench.answered(workflow)

    assert result.ok
    assert ended.is_set()
    assert [e.id for e in bench.events(ev.EffectFinished)] == ["wait#1"]


def test_a_handler_left_behind_does_not_keep_the_program_from_ending() -> None:
    """A step that may take a second and takes an hour must not hold the terminal for the hour."""
    left: list[str] = []

    async def main() -> tuple[Status, SkippingLoop]:
        loop = SkippingLoop()

        def slow(_ctx: StepContext) -> Work:
            loop.block()
            left.append("ended")
            return OK, {}

        bench = EngineFixture()
        result = await bench.start(one_step(slow, timeout=60))
        await bench.close()
        return result.status, loop

    # Returns only when the loop's own threads have ended.
    status, loop = asyncio.run(main())

    assert (status, left) == (Status.WAITING, [])
    loop.end()


async def test_a_function_that_ends_after_it_was_abandoned_disturbs_nothing() -> None:
    """Its time is up, and its result counts no more."""
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        may_end.wait(PATIENCE_SECONDS)
        ended.set()
        return "late"

    waiting = asyncio.ensure_future(on_thread(slow))
    await asyncio.to_thread(begun.wait, PATIENCE_SECONDS)
    waiting.cancel()
    may_end.set()
    await asyncio.to_thread(ended.wait, PATIENCE_SECONDS)

    assert await on_thread(lambda: "next") == "next"
    assert waiting.cancelled()


def test_a_function_may_end_after_its_event_loop() -> None:
    """A program that exits must not print errors of threads that it abandoned."""
    begun, may_end = threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        may_end.wait(PATIENCE_SECONDS)

    async def abandon() -> None:
        waiting = asyncio.ensure_future(on_thread(slow))
        await asyncio.to_thread(begun.wait, PATIENCE_SECONDS)
        waiting.cancel()

    asyncio.run(abandon())
    may_end.set()

    # The thread lives on and takes the next call.
    assert asyncio.run(on_thread(lambda: "next")) == "next"


def test_a_thread_makes_the_next_call_unless_the_last_one_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Starting a thread takes longer than most calls; one that hangs is abandoned."""
    monkeypatch.setattr(handlers, "_idle", {})
    may_end, numbers = threading.Event(), SimpleQueue[int]()

    def call_in_thread() -> int:
        in_idle_thread(lambda: numbers.put(threading.get_ident()))
        return numbers.get(timeout=PATIENCE_SECONDS)

    first = call_in_thread()
    wait_until(lambda: handlers._idle[os.getpid()])
    again = call_in_thread()
    wait_until(lambda: handlers._idle[os.getpid()])
    in_idle_thread(lambda: void(may_end.wait(PATIENCE_SECONDS)))

    assert first == again != threading.get_ident()
    assert call_in_thread() != first
    may_end.set()


def void(_value: object) -> None:
    """Drops a value."""
