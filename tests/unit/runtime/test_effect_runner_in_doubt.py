import asyncio
import json
import signal
import subprocess
import sys
from typing import Any

import pytest

from signoff.core.context import StepContext
from signoff.core.errors import WriteFailed
from signoff.core.outcome import Status
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.ports import idempotency_key
from tests.unit.runtime.engine_fixture import OK, DyingStore, EngineFixture, Work, one_step, only

KEY = idempotency_key("run", "work", 1, 1, "ask#1")
TRUE = [sys.executable, "-c", "print('ran')"]


def asking(**options: Any) -> Workflow:
    async def work(ctx: StepContext) -> Work:
        reply = await ctx.ask("claude", "Write.", **options)
        return OK, {"draft": reply.text}

    return one_step(work)


async def in_doubt(bench: EngineFixture, workflow: Workflow) -> None:
    """Starts the run in a process that dies while its first effect is in progress."""
    await bench.start_and_die(workflow, at=3)


async def test_a_call_in_doubt_is_made_again_by_default(bench: EngineFixture) -> None:
    """A model call changes nothing, so it can be repeated."""
    bench.agent.on("Write.", "lost", "hello")
    workflow = asking()

    await in_doubt(bench, workflow)
    result = await bench.resume(workflow)

    assert result.state == {"draft": "hello"}
    entry = only(bench.store.ledger(bench.store.row("run").id))
    assert (result.spend.calls, result.spend.usd) == (2, None)
    assert (entry.calls, entry.unknown_usd, entry.unknown_tokens) == (2, 1, 1)
    assert [call.attempt for call in bench.agent.calls] == [1, 2]
    assert len({call.idempotency_key for call in bench.agent.calls}) == 1


async def test_a_call_in_doubt_can_count_as_failed(bench: EngineFixture) -> None:
    """Some calls must never be made twice: the run fails, and a human has to look."""
    bench.agent.on("Write.", "lost", "hello")
    workflow = asking(on_crash="fail")

    await in_doubt(bench, workflow)
    failed = await bench.resume(workflow)

    assert failed.status is Status.FAILED
    assert "by a stop or a crash" in failed.reason
    assert "its result is unknown" in failed.reason
    assert len(bench.agent.calls) == 1


@pytest.mark.parametrize("options", [{"on_crash": "ask"}, {"edit": True}])
async def test_an_edit_in_doubt_goes_to_a_human(
    bench: EngineFixture, options: dict[str, Any]
) -> None:
    """Half an edit on top of half an edit is worse than waiting."""
    bench.agent.on("Write.", "lost", "hello")
    workflow = asking(**options)

    await in_doubt(bench, workflow)
    waiting = await bench.resume(workflow)

    assert waiting.status is Status.WAITING
    assert "it is unknown" in only(waiting.inbox).prompt
    assert "claude" in only(waiting.inbox).prompt
    assert len(bench.agent.calls) == 1


@pytest.mark.parametrize(
    ("answer", "state", "reason", "calls"),
    [
        (("rerun",), {"draft": "hello"}, "", 2),
        (("done", "found in the editor"), {"draft": "found in the editor"}, "", 1),
        (("failed", "only half the files"), {}, "only half the files", 1),
    ],
)
async def test_a_human_who_looked_decides_what_became_of_it(
    bench: EngineFixture, answer: tuple[str, ...], state: Any, reason: str, calls: int
) -> None:
    """Nothing had happened yet, the work was there, or it was half done."""
    bench.agent.on("Write.", "lost", "hello")
    workflow = asking(on_crash="ask")
    await in_doubt(bench, workflow)
    await bench.resume(workflow)

    bench.answer(*answer)
    result = await bench.resume(workflow)

    assert (result.state, result.reason) == (state, reason)
    assert result.status is (Status.FAILED if reason else Status.COMPLETED)
    assert result.spend.usd is None
    assert len(bench.agent.calls) == calls


async def test_a_second_crash_asks_again(bench: EngineFixture) -> None:
    """The answer was about the first attempt; the second one is in doubt again."""
    bench.agent.on("Write.", "lost", "lost again", "hello")
    workflow = asking(on_crash="ask")
    await in_doubt(bench, workflow)
    await bench.resume(workflow)
    bench.answer("rerun")
    await bench.restart(DyingStore(bench.store, 2))
    with pytest.raises(WriteFailed):
        await bench.engine.resume("run", workflow)

    waiting = await bench.resume(workflow)

    assert waiting.status is Status.WAITING
    assert len(bench.agent.calls) == 2


async def test_commands_are_asked_about_by_default(bench: EngineFixture) -> None:
    """A deployment that may have happened must not happen twice by itself."""

    async def work(ctx: StepContext) -> Work:
        result = await ctx.command(TRUE)
        return OK, {"reply": result.stdout}

    workflow = one_step(work)
    await in_doubt(bench, workflow)

    waiting = await bench.resume(workflow)
    bench.answer("done", "saw it myself")
    result = await bench.resume(workflow)

    assert "'-c'" in only(waiting.inbox).prompt
    assert result.state == {"reply": "saw it myself"}


QUOTA_BACK = 4e9


@pytest.mark.parametrize(
    ("outcome", "status", "reason"),
    [
        ({"reply": {"text": "late"}, "usage": {"usd": 0.5}}, Status.COMPLETED, ""),
        (
            {"error": {"type": "AgentAuth", "message": "not logged in"}},
            Status.FAILED,
            "not logged in",
        ),
        (
            {"error": {"type": "AgentQuota", "message": "no quota", "until": QUOTA_BACK}},
            Status.PARKED,
            "no quota",
        ),
    ],
    ids=["reply", "failure", "no quota"],
)
async def test_what_the_runner_before_heard_late_is_used(
    bench: EngineFixture, outcome: dict[str, Any], status: Status, reason: str
) -> None:
    """It lost its run while the call was in progress, and stored what was paid for."""
    bench.agent.on("Write.", "lost")
    workflow = asking()
    await in_doubt(bench, workflow)
    late = json.dumps({"reply": None, "error": None, "usage": None} | outcome)
    bench.store.keep_late(bench.store.row("run").id, KEY, 1, late)

    result = await bench.resume(workflow)

    assert result.status is status
    assert reason in result.reason
    assert result.due_at == (QUOTA_BACK if status is Status.PARKED else None)
    assert len(bench.agent.calls) == 1
    if status is Status.COMPLETED:
        assert result.state == {"draft": "late"}
        assert (result.spend.calls, result.spend.known_usd) == (1, 0.5)


async def test_a_late_reply_to_an_earlier_attempt_is_not_taken_for_this_one(
    bench: EngineFixture,
) -> None:
    """It may be the reply to another prompt."""
    bench.agent.on("Write.", "lost", "hello")
    workflow = asking()
    await in_doubt(bench, workflow)
    outcome = '{"reply": {"text": "old"}, "error": null, "usage": null}'
    bench.store.keep_late(bench.store.row("run").id, KEY, 7, outcome)

    assert (await bench.resume(workflow)).state == {"draft": "hello"}


async def test_a_program_that_outlived_its_runner_is_ended_before_it_runs_again(
    bench: EngineFixture,
) -> None:
    """Two of them would work in one directory."""
    orphan = sleeper()
    workflow = Workflow("flow", StepDef("work", handler=_command, next={OK: None}))
    await in_doubt(bench, workflow)
    bench.add_process(orphan.pid)

    try:
        # Waited for meanwhile, as the system does for a program whose parent is gone.
        ended = asyncio.create_task(asyncio.to_thread(orphan.wait, 10))
        waiting = await bench.resume(workflow)
        code = await ended
    finally:
        orphan.kill()

    assert waiting.status is Status.WAITING
    assert code == -signal.SIGTERM


async def test_a_stranger_with_the_number_of_a_dead_program_is_left_alone(
    bench: EngineFixture,
) -> None:
    """Process numbers are used again."""
    stranger = sleeper()
    workflow = Workflow("flow", StepDef("work", handler=_command, next={OK: None}))
    await in_doubt(bench, workflow)
    bench.add_process(stranger.pid, born="long ago")

    try:
        await bench.resume(workflow)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def sleeper() -> subprocess.Popen[bytes]:
    program = "import time; time.sleep(600)"
    return subprocess.Popen([sys.executable, "-c", program], start_new_session=True)


async def _command(ctx: StepContext) -> Work:
    await ctx.command(TRUE)
    return OK, {}
