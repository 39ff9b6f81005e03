import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from signoff.core.context import StepContext
from signoff.core.errors import EngineError, StoreBusy, WriteFailed
from signoff.core.outcome import Status
from signoff.runtime.journal import SLOW_SECONDS, THREADED_COMMITS
from signoff.runtime.store_port import Commit, CommitResult
from signoff.store.sqlite import MemoryStore
from signoff.testing import FrozenClock, WrappedStore
from tests.patience import PATIENCE_SECONDS, until
from tests.unit.runtime.engine_fixture import (
    OK,
    CountingStore,
    EngineFixture,
    Work,
    chain,
    one_step,
)


def plain(ctx: StepContext) -> Work:
    return OK, {ctx.step_id: "done"}


async def write(ctx: StepContext) -> Work:
    return OK, {ctx.step_id: (await ctx.ask("claude", "Write.")).text}


class ThreadWatch(WrappedStore):
    """Records the thread of each commit."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.clock = FrozenClock()
        self.on_loop: list[bool] = []

    def commit(self, commits: Sequence[Commit], *, wait: bool = True) -> list[CommitResult]:
        self.on_loop.append(threading.current_thread() is threading.main_thread())
        self.during()
        return super().commit(commits, wait=wait)

    def during(self) -> None:
        """Does nothing."""

    def take_long(self) -> None:
        """Makes a commit count as slow without really waiting."""
        self.clock.advance(SLOW_SECONDS * 1.5)


def engine_on(store: ThreadWatch) -> EngineFixture:
    """Returns an engine that goes by its store's clock, which says what was slow."""
    return EngineFixture(store=store, clock=store.clock)


class SlowOnce(ThreadWatch):
    """Takes long over its third commit."""

    def during(self) -> None:
        if len(self.on_loop) == 3:
            self.take_long()


class BusyOnce(ThreadWatch):
    """Is locked by another process at the third commit that does not wait."""

    def commit(self, commits: Sequence[Commit], *, wait: bool = True) -> list[CommitResult]:
        if len(self.on_loop) == 2 and not wait:
            raise StoreBusy
        return super().commit(commits, wait=wait)


@pytest.mark.usefixtures("fast_disk")
@pytest.mark.parametrize("handler", [plain, write])
async def test_what_several_runs_do_in_one_turn_is_one_transaction(handler: Any) -> None:
    """Five hundred runs side by side would otherwise queue for the disk."""
    store = CountingStore()
    bench = EngineFixture(store=store)
    bench.agent.on("Write", "text")
    workflow = chain(handler, handler)

    await asyncio.gather(*(bench.engine.start(workflow, name=f"run{n}") for n in range(50)))

    assert max(store.batches) == 50
    assert store.commits < 20
    await bench.close()


async def test_a_slow_disk_makes_a_thread_take_over_and_a_quick_one_gives_back() -> None:
    """While the disk is slow, the loop must keep serving the other runs."""
    bench = engine_on(store := SlowOnce())

    result = await bench.start(chain(*[plain] * (THREADED_COMMITS + 10)))

    assert result.ok
    assert store.on_loop[:3] == [True] * 3
    assert store.on_loop[3 : 3 + THREADED_COMMITS] == [False] * THREADED_COMMITS
    assert store.on_loop[3 + THREADED_COMMITS :].count(True) > 3
    await bench.close()


async def test_a_locked_database_is_waited_for_in_a_thread() -> None:
    """Another process writes for a second; this one's loop must not stand still."""
    bench = engine_on(store := BusyOnce())

    result = await bench.start(chain(*[plain] * 5))

    assert result.ok
    assert store.on_loop[:3] == [True, True, False]
    await bench.close()


async def test_while_a_thread_commits_the_loop_continues() -> None:
    """A run whose commit takes a second does not stop the others for a second."""
    bench = engine_on(SlowWhileWatched())
    store = bench.store
    assert isinstance(store, SlowWhileWatched)
    turns = 0

    async def tick() -> None:
        nonlocal turns
        while not store.let_go.is_set():
            await asyncio.sleep(0)
            turns += 1
            if store.in_thread.is_set() and turns > 100:
                store.let_go.set()

    async with asyncio.timeout(PATIENCE_SECONDS):
        result, _ = await asyncio.gather(bench.start(chain(*[plain] * 5)), tick())

    assert result.ok
    assert turns > 100
    await bench.close()


class SlowWhileWatched(ThreadWatch):
    """Is slow once, and its first commit in the thread waits to be let go."""

    def __init__(self) -> None:
        super().__init__()
        self.in_thread = threading.Event()
        self.let_go = threading.Event()

    def during(self) -> None:
        if len(self.on_loop) == 1:
            self.take_long()
        if not self.on_loop[-1]:
            self.in_thread.set()
            self.let_go.wait(PATIENCE_SECONDS)


async def test_stopping_one_run_leaves_the_others_that_wait_for_the_same_commit_alone() -> None:
    """They share a transaction; a Ctrl-C meant for one must not hit them."""
    bench = engine_on(store := SlowWhileWatched())
    workflow = chain(*[plain] * 3)
    one = asyncio.create_task(bench.engine.start(workflow, name="one"))
    two = asyncio.create_task(bench.engine.start(workflow, name="two"))
    await asyncio.to_thread(store.in_thread.wait, PATIENCE_SECONDS)

    one.cancel()
    await asyncio.sleep(0.01)
    store.let_go.set()
    ended = await asyncio.gather(one, two, return_exceptions=True)

    assert isinstance(ended[0], asyncio.CancelledError)
    assert getattr(ended[1], "ok", False), ended[1]
    assert bench.store.row("one").status is Status.INTERRUPTED
    await bench.close()


class Broken(ThreadWatch):
    """Has a bug."""

    def __init__(self, error: Exception, *, threaded: bool) -> None:
        super().__init__()
        self._error = error
        self._threaded = threaded

    def during(self) -> None:
        if self._threaded and len(self.on_loop) == 2:
            self.take_long()
        if len(self.on_loop) == 3:
            raise self._error


@pytest.mark.parametrize("threaded", [False, True])
async def test_a_bug_in_a_store_stops_the_run_instead_of_hanging_it(threaded: bool) -> None:
    """A run that waits for a verdict that never comes waits for ever."""
    bench = engine_on(Broken(KeyError("oops"), threaded=threaded))

    async with asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises(EngineError, match="oops"):
            await bench.start(chain(*[plain] * 5))
        await bench.close()


@pytest.mark.parametrize("threaded", [False, True])
async def test_a_disk_that_fails_is_reported_to_every_run_of_the_transaction(
    threaded: bool,
) -> None:
    """None of them may continue as if its work were safe."""
    bench = engine_on(Broken(WriteFailed("disk full"), threaded=threaded))
    workflow = chain(*[plain] * 5)

    ended = await asyncio.gather(
        *(bench.engine.start(workflow, name=f"run{n}") for n in range(3)), return_exceptions=True
    )

    assert [type(e) for e in ended] == [WriteFailed] * 3
    await bench.close()


class Forgetful(ThreadWatch):
    """Returns fewer results than it got commits."""

    def commit(self, commits: Sequence[Commit], *, wait: bool = True) -> list[CommitResult]:
        return super().commit(commits, wait=wait)[1:]


async def test_a_store_that_does_not_answer_is_not_believed() -> None:
    """No verdict is no yes."""
    bench = engine_on(Forgetful())

    with pytest.raises(WriteFailed):
        await bench.start(one_step(plain))
    await bench.close()


async def test_closing_waits_for_a_commit_in_progress() -> None:
    """A program that ends must not cut its last write off."""
    bench = engine_on(store := SlowWhileWatched())
    run = asyncio.create_task(bench.start(chain(plain, plain)))
    await asyncio.to_thread(store.in_thread.wait, PATIENCE_SECONDS)

    closing = asyncio.create_task(bench.close())
    await asyncio.sleep(0.01)
    assert not closing.done()
    store.let_go.set()

    await run
    await closing


def test_a_program_that_ends_while_a_thread_commits_does_end() -> None:
    """Tasks that wait for that commit must be released, or `asyncio.run` never returns."""
    store = SlowAlways()

    async def ask(ctx: StepContext) -> Work:
        for number in range(100):
            await ctx.ask("claude", "Write.", key=f"k{number}")
        return OK, {}

    async def main() -> None:
        bench = engine_on(store)
        bench.agent.on("Write", "text")
        run = asyncio.create_task(bench.start(one_step(ask)))
        await until(lambda: not all(store.on_loop))
        assert not run.done()
        raise ValueError("something else went wrong")

    with pytest.raises(ValueError, match="something else"):
        asyncio.run(main())

    assert not all(store.on_loop)


class SlowAlways(ThreadWatch):
    """Takes so long over every commit that a thread has to make them."""

    def during(self) -> None:
        self.take_long()
        if not self.on_loop[-1]:
            time.sleep(SLOW_SECONDS)


class BusyAlways(ThreadWatch):
    """Is locked by another process whenever a commit does not wait."""

    def commit(self, commits: Sequence[Commit], *, wait: bool = True) -> list[CommitResult]:
        if not wait:
            raise StoreBusy
        return super().commit(commits, wait=wait)


@pytest.mark.parametrize("make_store", [ThreadWatch, BusyAlways])
def test_a_program_can_end_in_any_turn_of_its_loop(make_store: Callable[[], ThreadWatch]) -> None:
    """A task that is cancelled before it began says nothing, and must not be waited for."""

    async def one(ctx: StepContext, item: str) -> str:
        return (await ctx.ask("claude", f"Write {item}.")).text

    async def work(ctx: StepContext) -> Work:
        await ctx.ask("claude", "Write.")
        await ctx.map(["a", "b", "c"], one)
        return OK, {}

    async def main(turns: int) -> None:
        bench = engine_on(make_store())
        bench.agent.on("Write", "text")
        run = asyncio.create_task(bench.start(chain(work, plain, work)))
        for _ in range(turns):
            await asyncio.sleep(0)
        whole.append(run.done())
        raise ValueError("something else went wrong")

    whole: list[bool] = []
    while len(whole) < 500 and not any(whole[-1:]):
        with pytest.raises(ValueError, match="something else"):
            asyncio.run(main(len(whole)))

    assert len(whole) > 10, "it ended before much could have been cut off"
