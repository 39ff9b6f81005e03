import asyncio

import pytest

from signoff.core import events as ev
from signoff.core.codec import BLOB_FROM
from signoff.core.context import StepContext
from signoff.core.errors import StepFailed
from signoff.core.outcome import Status
from signoff.core.requests import Question
from signoff.runtime.attempt_effects import LONGEST_LINE
from signoff.runtime.environment import Secrets
from signoff.runtime.ports import Notice, Recorded
from tests.unit.runtime.engine_fixture import OK, CountingStore, EngineFixture, Work, one_step


def lines(bench: EngineFixture) -> list[str]:
    return [event.text for event in bench.events(ev.Logged)]


async def test_a_line_is_recorded_and_shown_once_however_often_the_handler_runs(
    bench: EngineFixture,
) -> None:
    """After a wait the handler runs again from the top; its log must not start over."""
    shown: list[str] = []

    class Watcher:
        def notice(self, notice: Notice) -> None:
            if isinstance(notice, Recorded):
                shown.extend(e.text for e in notice.events if isinstance(e, ev.Logged))

    async def work(ctx: StepContext) -> Work:
        ctx.log("begins")
        ctx.log("same")
        ctx.log("same")
        await ctx.wait(Question("Good?"))
        ctx.log("same")
        return OK, {}

    workflow = one_step(work)
    await bench.restart(observers=[Watcher()])

    await bench.answered(workflow)

    assert lines(bench) == shown == ["begins", "same", "same", "same"]


async def test_wherever_a_process_dies_no_line_is_lost_or_repeated() -> None:
    """Concurrent branches, items and retries log in another order when they are replayed."""

    async def item(ctx: StepContext, name: str) -> str:
        reply = await ctx.ask("claude", f"About {name}. {ctx.feedback or ''}")
        ctx.log(f"{name}: {reply.text}")
        if ctx.attempt == 1 and name == "b":
            raise StepFailed("again")
        return reply.text

    async def branch(ctx: StepContext, key: str) -> None:
        await ctx.ask("claude", f"Branch {key}", key=key)
        ctx.log(f"branch {key}")
        await ctx.ask("claude", f"More {key}", key=f"more-{key}")
        ctx.log(f"more {key}")

    async def work(ctx: StepContext) -> Work:
        ctx.log(f"attempt {ctx.attempt}")
        await asyncio.gather(branch(ctx, "x"), branch(ctx, "y"))
        await ctx.map(["a", "b", "c"], item, retries=1)
        return OK, {}

    workflow = one_step(work)
    branches = ["attempt 1", "branch x", "branch y", "more x", "more y"]
    expected = sorted([*branches, "a: fine", "b: fine", "b: fine", "c: fine"])
    deaths = 0
    for at in range(2, 100):
        bench = EngineFixture()
        bench.agent.on("", "fine")
        try:
            await bench.start_and_die(workflow, at=at)
        except pytest.fail.Exception:  # the run needs fewer commits than that
            assert sorted(lines(bench)) == expected
            break
        deaths += 1
        result = await bench.resume(workflow)
        await bench.close()
        assert result.status is Status.COMPLETED
        assert sorted(lines(bench)) == expected, f"died at commit {at}"
    assert deaths > 3


async def test_another_attempt_logs_again(bench: EngineFixture) -> None:
    """It is another piece of work; hiding its lines would hide what it did."""

    async def work(ctx: StepContext) -> Work:
        ctx.log("tries")
        if ctx.attempt == 1:
            raise StepFailed("too short")
        return OK, {}

    await bench.start(one_step(work, retries=1))

    assert lines(bench) == ["tries", "tries"]


async def test_an_attempt_that_was_late_does_not_repeat_its_lines(bench: EngineFixture) -> None:
    """It continues with the finished effects of the one before, so its lines are the same."""

    async def work(ctx: StepContext) -> Work:
        ctx.log("begins")
        await ctx.ask("claude", "Write.")
        if ctx.attempt == 1:
            await asyncio.Event().wait()
        return OK, {}

    bench.agent.on("Write.", "a")

    await bench.start(one_step(work, retries=1, timeout=0.2))

    assert lines(bench) == ["begins"]


async def test_ten_thousand_lines_need_a_few_commits() -> None:
    """A loop that logs must not wait for the disk ten thousand times."""

    async def work(ctx: StepContext) -> Work:
        for number in range(10_000):
            ctx.log(f"line {number}")
        return OK, {}

    store = CountingStore()
    bench = EngineFixture(store=store)

    await bench.start(one_step(work))

    assert lines(bench) == [f"line {number}" for number in range(10_000)]
    assert store.commits < 5


async def test_secrets_and_long_texts_are_cut_from_a_line(bench: EngineFixture) -> None:
    """Logs are read, sent and stored by many; a reply of megabytes has no place there."""

    async def work(ctx: StepContext) -> Work:
        ctx.log("the key is sk-12345678")
        ctx.log("x" * 100_000)
        return OK, {}

    await bench.restart(secrets=Secrets((("API_KEY", "sk-12345678"),)))

    await bench.start(one_step(work))

    secret, long = lines(bench)
    assert secret == "the key is [hidden: API_KEY]"
    assert len(long) == LONGEST_LINE < BLOB_FROM
    assert long.endswith("…")


@pytest.mark.parametrize("text", ["", "\ud83d", "a\x1b[2Jb\r\n\u202ec", '{"$blob": "x"}'])
async def test_any_text_can_be_logged(bench: EngineFixture, text: str) -> None:
    """Models write anything; a line that could not be stored would stop the run."""

    async def work(ctx: StepContext) -> Work:
        ctx.log(text)
        await ctx.wait(Question("Good?"))
        return OK, {}

    workflow = one_step(work)

    result = await bench.answered(workflow)

    assert result.ok
    assert lines(bench) == [text]


@pytest.mark.parametrize("seconds", [None, 60])
async def test_an_ordinary_function_can_log(bench: EngineFixture, seconds: float | None) -> None:
    """With a timeout it runs in a thread, and the journal is used on the loop only."""

    def work(ctx: StepContext) -> Work:
        ctx.log("from a plain function")
        return OK, {}

    result = await bench.start(one_step(work, timeout=seconds))

    assert result.ok
    assert lines(bench) == ["from a plain function"]


async def test_logging_from_a_thread_of_the_handler_is_refused(bench: EngineFixture) -> None:
    """The journal is not safe for threads; the error names the way out."""

    async def work(ctx: StepContext) -> Work:
        await asyncio.to_thread(ctx.log, "from elsewhere")
        return OK, {}

    result = await bench.start(one_step(work))

    assert result.status is Status.FAILED
    assert "another thread" in result.reason


async def test_a_task_left_running_cannot_log_into_the_next_step(bench: EngineFixture) -> None:
    """Its line would appear under a step that never logged it."""
    refused: list[str] = []
    gone = asyncio.Event()
    left: list[asyncio.Task[None]] = []

    async def late(ctx: StepContext) -> None:
        await gone.wait()
        try:
            ctx.log("too late")
        except Exception as error:  # noqa: BLE001  # looked at below
            refused.append(str(error))

    async def work(ctx: StepContext) -> Work:
        left.append(asyncio.create_task(late(ctx)))
        return OK, {}

    await bench.start(one_step(work))
    gone.set()
    await left[0]

    assert lines(bench) == []
    assert "after its handler had ended" in refused[0]
