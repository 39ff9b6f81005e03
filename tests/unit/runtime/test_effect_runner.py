import asyncio
from datetime import UTC, datetime

import pytest

from signoff.core import errors
from signoff.core import events as ev
from signoff.core.context import StepContext
from signoff.core.effects import AgentRequest, Reply
from signoff.core.outcome import Status
from signoff.core.spend import Usage
from signoff.runtime.effect_runner import QUOTA_PAUSE_SECONDS
from signoff.runtime.engine import Engine
from signoff.runtime.owner import this_process
from signoff.runtime.ports import AgentLimits, Call, Notice, Retrying, idempotency_key
from signoff.runtime.services import Backoff
from signoff.runtime.store_port import Owner, RunId
from signoff.testing import ScriptedAgent
from tests.patience import SkippingLoop, until
from tests.unit.runtime.engine_fixture import OK, DyingStore, EngineFixture, Work, one_step, only

DOLLAR = Usage(tokens_in=10, tokens_out=20, usd=1.0)


async def write(ctx: StepContext) -> Work:
    reply = await ctx.ask("claude", "Write.")
    return OK, {"draft": reply.text}


WRITE = one_step(write)


def costing(error: Exception, usage: Usage) -> Exception:
    error.usage = usage  # type: ignore[attr-defined]  # how agents say what a failure cost
    return error


# Transient errors


async def test_a_transient_error_is_retried_with_growing_pauses(bench: EngineFixture) -> None:
    """An overloaded provider must not end a run."""
    bench.agent.on(
        "Write.", errors.AgentTransient("overloaded"), errors.AgentTransient("overloaded"), "hello"
    )

    result = await bench.start(WRITE)

    assert result.state == {"draft": "hello"}
    assert len(bench.clock.slept) == 2
    first, second = bench.clock.slept
    assert 0.75 <= first <= 1.25
    assert 1.5 <= second <= 2.5


async def test_a_failed_try_that_says_what_it_cost_is_on_the_bill(bench: EngineFixture) -> None:
    """Some providers charge for half an answer, and say so."""
    fault = costing(errors.AgentTransient("cut off"), DOLLAR)
    bench.agent.on("Write.", fault, Reply("hello", usage=DOLLAR))

    result = await bench.start(WRITE)

    entry = only(bench.store.ledger(bench.store.row("run").id))
    assert (result.spend.usd, result.spend.tokens) == (2.0, 60)
    assert (entry.calls, entry.usd, entry.tokens_in, entry.tokens_out) == (2, 2.0, 20, 40)


async def test_all_tries_carry_the_same_idempotency_key(bench: EngineFixture) -> None:
    """By it a provider recognises a repeat and does not charge twice."""
    bench.agent.on("Write.", errors.AgentTransient("overloaded"), "hello")

    await bench.start(WRITE)

    first, second = bench.agent.calls
    assert first.idempotency_key == second.idempotency_key
    assert first.idempotency_key == idempotency_key(first.run_key, "work", 1, 1, "ask#1")
    assert (first.attempt, second.attempt) == (1, 2)


async def test_runs_of_the_same_name_carry_different_idempotency_keys() -> None:
    """A provider that remembers keys would give the second project the first one's reply."""
    keys = []
    for _ in range(2):
        bench = EngineFixture()
        bench.agent.on("Write", "text")
        await bench.start(WRITE)
        keys.append(bench.agent.calls[0].idempotency_key)
        await bench.close()

    assert keys[0] != keys[1]


async def test_observers_are_notified_of_the_pause() -> None:
    """A run that seems to hang is often one that backs off."""
    notices: list[Notice] = []

    class Watcher:
        def notice(self, notice: Notice) -> None:
            notices.append(notice)

    bench = EngineFixture(observers=[Watcher()], backoff=Backoff(attempts=2, first=8.0))
    bench.agent.on("Write.", errors.AgentTransient("overloaded"), "hello")

    await bench.start(WRITE)
    await bench.close()

    retrying = only([n for n in notices if isinstance(n, Retrying)])
    assert (retrying.effect, retrying.error) == ("ask#1", "overloaded")
    assert retrying.seconds == bench.clock.slept[0]


async def test_an_error_of_content_is_not_retried_without_the_handler(bench: EngineFixture) -> None:
    """It needs feedback, not the same again; that is the step's retry."""
    bench.agent.on("Write.", errors.AgentBadOutput("no JSON"), "hello")

    result = await bench.start(WRITE)

    assert result.state == {"draft": "hello"}
    assert bench.clock.slept == []
    assert len(bench.events(ev.AttemptFailed)) == 1


# Quota and login


async def test_out_of_quota_parks_the_run_until_the_time_the_agent_names(
    bench: EngineFixture,
) -> None:
    """No one has to watch it; `resume --due` continues the run."""
    until = datetime.fromtimestamp(bench.clock.now() + 7200, UTC)
    bench.agent.on(
        "Write.", errors.AgentQuota("5 hour limit", until=until), Reply("hello", usage=DOLLAR)
    )

    parked = await bench.start(WRITE)

    row = bench.store.row("run")
    assert (parked.status, parked.due_at) == (Status.PARKED, until.timestamp())
    assert "5 hour limit" in parked.reason
    assert [r.name for r in bench.store.rows(due_before=until.timestamp())] == ["run"]
    assert row.owner is None
    bench.clock.advance(7200)
    result = await bench.resume(WRITE)
    assert result.state == {"draft": "hello"}
    # Nothing was worked meanwhile, so neither money nor a round is counted.
    assert (parked.spend.usd, parked.iteration) == (0.0, 1)
    assert (result.spend.usd, result.iteration) == (1.0, 1)
    assert bench.events(ev.AttemptFailed) == []


async def test_out_of_quota_without_a_time_is_tried_again_after_a_while(
    bench: EngineFixture,
) -> None:
    """Not every agent says when."""
    bench.agent.on("Write.", errors.AgentQuota("no credits"))

    parked = await bench.start(WRITE)

    assert parked.due_at == bench.clock.now() + QUOTA_PAUSE_SECONDS


async def test_an_agent_that_is_not_logged_in_fails_the_run_and_a_resume_asks_only_it(
    bench: EngineFixture,
) -> None:
    """Log in, resume, done: the calls before it are not repeated."""

    async def work(ctx: StepContext) -> Work:
        draft = await ctx.ask("claude", "Write.", key="draft")
        check = await ctx.ask("claude", f"Check {draft.text}", key="check")
        return OK, {"reply": check.text}

    bench.agent.on("Check", errors.AgentAuth("run `claude login`"), "fine").on("Write.", "hello")
    workflow = one_step(work)

    failed = await bench.start(workflow)
    result = await bench.resume(workflow)

    assert (failed.status, failed.reason) == (Status.FAILED, "run `claude login`")
    assert result.state == {"reply": "fine"}
    assert bench.agent.prompts == ["Write.", "Check hello", "Check hello"]
    assert failed.spend.usd == 0.0


# Calls that are cut off


async def test_a_call_stopped_with_its_run_is_repeated_and_its_cost_unknown(
    bench: EngineFixture,
) -> None:
    """The provider may bill it; the run says it does not know, and loses nothing."""

    async def hang(_request: AgentRequest) -> str:
        bench.engine.interrupt()
        await asyncio.Event().wait()
        return ""

    bench.agent.on("Write.", hang, "hello")

    stopped = await bench.start(WRITE)
    result = await bench.resume(WRITE)

    assert (result.state, result.spend.calls) == ({"draft": "hello"}, 2)
    assert stopped.status is Status.INTERRUPTED
    assert stopped.spend.calls == 1
    assert stopped.spend.usd is None
    assert stopped.spend.tokens is None


async def test_a_call_that_takes_too_long_is_cut_off(
    bench: EngineFixture, loop: SkippingLoop
) -> None:
    """Its time-out is a fault of content: another try may be quicker."""

    async def work(ctx: StepContext) -> Work:
        reply = await ctx.ask("claude", f"Write. {ctx.feedback}", timeout=60)
        return OK, {"draft": reply.text}

    async def hang(_request: AgentRequest) -> str:
        await loop.hang()
        return ""

    bench.agent.on("no answer within 60 seconds", "hello").on("Write.", hang)

    assert (await bench.start(one_step(work))).state == {"draft": "hello"}


# Durability


async def test_nothing_goes_outside_before_its_start_is_durable(bench: EngineFixture) -> None:
    """A call that is missing in the journal would be made twice."""
    durable: list[list[str]] = []

    def look(_request: AgentRequest) -> str:
        durable.append([event.tag for event in bench.events()])
        return "hello"

    bench.agent.on("Write.", look)

    await bench.start(WRITE)

    assert durable == [["run_started", "effect_started"]]


async def test_a_slow_reply_is_durable_before_its_handler_continues(bench: EngineFixture) -> None:
    """A handler that then blocks or crashes must not lose an expensive reply."""
    durable: list[str] = []

    async def work(ctx: StepContext) -> Work:
        await ctx.ask("claude", "Write.")
        durable.extend(event.tag for event in bench.events())
        return OK, {}

    def slow(_request: AgentRequest) -> str:
        bench.clock.advance(60)
        return "hello"

    bench.agent.on("Write.", slow)

    await bench.start(one_step(work))

    assert durable[-1] == "effect_finished"


async def test_a_role_is_paced_like_the_agent_that_plays_it() -> None:
    """Two names for one agent must not double what it is asked at once."""
    bench = EngineFixture(
        roles={"developer": "claude"}, agent_limits={"claude": AgentLimits(concurrency=1)}
    )

    async def work(ctx: StepContext) -> Work:
        await asyncio.gather(ctx.ask("claude", "a", key="a"), ctx.ask("developer", "b", key="b"))
        return OK, {}

    async def slow(request: AgentRequest) -> str:
        await asyncio.sleep(0)
        return request.prompt

    bench.agent.on("", slow)

    await bench.start(one_step(work))
    await bench.close()

    assert bench.agent.most_at_once == 1


async def test_every_further_try_counts_against_the_rate() -> None:
    """A busy provider that limits the rate was asked more often, not less."""
    starts: list[float] = []
    bench = EngineFixture(agent_limits={"claude": AgentLimits(rate="1/min")})

    def busy(_request: AgentRequest) -> str:
        starts.append(bench.clock.monotonic())
        if len(starts) < 3:
            raise errors.AgentTransient("overloaded")
        return "hello"

    bench.agent.on("Write.", busy)

    result = await bench.start(WRITE)
    await bench.close()

    assert result.ok
    assert [later - starts[0] for later in starts] == [0, 60, 120]


async def test_an_agent_that_passes_a_request_on_waits_for_a_slot_outside_of_its_own_time() -> None:
    """The other agent's limits apply, and a call that was not sent yet is not late."""
    loop = SkippingLoop()
    waiting: list[bool] = []

    class Delegate:
        async def ask(self, request: AgentRequest, call: Call) -> Reply:
            async with call.slot("claude"), call.slot("an agent without limits"):
                waiting.append(True)
                # Each takes most of its own time, and all of them together much more.
                loop.skip(40)
                await asyncio.sleep(0)
                assert waiting.pop()
                assert not waiting, "two were let in at once"
            return Reply(request.prompt)

    bench = EngineFixture(
        agents={"claude": ScriptedAgent(), "lazy": Delegate()},
        agent_limits={"claude": AgentLimits(concurrency=1)},
    )

    async def work(ctx: StepContext) -> Work:
        await asyncio.gather(*(ctx.ask("lazy", n, key=n, timeout=60) for n in "abcd"))
        return OK, {}

    result = await bench.start(one_step(work))
    await bench.close()

    assert result.ok, result.reason


# Losing the run


class Usurped:
    """An agent during whose call another process takes the run over."""

    def __init__(self, bench: EngineFixture) -> None:
        self._bench = bench

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        store = self._bench.store
        usurper = this_process()
        store.take(store.row("run").id, usurper, lambda _owner: False)
        store.leave(usurper)
        return Reply("paid for", usage=DOLLAR)


async def test_a_reply_that_arrives_after_the_run_was_lost_is_stored_for_the_new_owner() -> None:
    """It was paid for, so the new owner must not have to pay again."""
    bench = EngineFixture()
    await bench.restart(agents={"claude": Usurped(bench)})

    with pytest.raises(errors.LeaseLost):
        await bench.start(WRITE)

    late = bench.store.late(bench.store.row("run").id)
    assert list(late) == [(idempotency_key("run", "work", 1, 1, "ask#1"), 1)]
    await bench.restart(agents={"claude": bench.agent})
    result = await bench.engine.resume("run", WRITE)
    assert result.state == {"draft": "paid for"}
    assert (result.spend.calls, result.spend.usd) == (1, 1.0)
    assert bench.agent.prompts == []
    await bench.close()


async def test_a_call_cut_off_by_the_loss_of_its_run_is_no_reply() -> None:
    """Kept as one, it would fail the run of the new owner."""
    bench = EngineFixture()

    async def work(ctx: StepContext) -> Work:
        first, second = await asyncio.gather(
            ctx.ask("thief", "Steal.", key="thief"), ctx.ask("claude", "Write.", key="draft")
        )
        return OK, {"draft": second.text, "first": first.text}

    loop = SkippingLoop()

    async def hang(_request: AgentRequest) -> str:
        await loop.hang()
        return ""

    bench.agent.on("Write.", hang, "hello").on("Steal.", "loot")
    await bench.restart(agents={"claude": bench.agent, "thief": Usurped(bench)})
    workflow = one_step(work, timeout=60)

    with pytest.raises(errors.LeaseLost):
        await bench.start(workflow)

    late = bench.store.late(bench.store.row("run").id)
    assert list(late) == [(idempotency_key("run", "work", 1, 1, "thief#1"), 1)]
    await bench.close()


# Losing the store


async def write_two(ctx: StepContext) -> Work:
    drafts = await asyncio.gather(
        ctx.ask("claude", "Write one.", key="one"), ctx.ask("claude", "Write two.", key="two")
    )
    return OK, {"drafts": [draft.text for draft in drafts]}


async def test_replies_that_a_lost_store_could_not_take_are_used_when_it_is_back(
    bench: EngineFixture,
) -> None:
    """Of two calls, one ends before the failure is known and one after; both are paid for."""
    store = DyingStore(bench.store, 3)
    await bench.restart(store)

    async def after_the_failure(_request: AgentRequest) -> Reply:
        await until(lambda: store.failed, "the failed commit")
        return Reply("second", usage=DOLLAR)

    bench.agent.on("Write one.", Reply("first", usage=DOLLAR))
    bench.agent.on("Write two.", after_the_failure)
    workflow = one_step(write_two)
    with pytest.raises(errors.WriteFailed):
        await bench.start(workflow)

    store.revive()
    result = await bench.engine.resume("run", workflow)

    assert result.state == {"drafts": ["first", "second"]}
    assert (result.spend.calls, result.spend.usd) == (2, 2.0)
    assert sorted(bench.agent.prompts) == ["Write one.", "Write two."]


class LostAgain(DyingStore):
    """Cannot be read when late replies are looked up for the first time."""

    unreadable = True

    def late(self, run: RunId) -> dict[tuple[str, int], str]:
        if self.unreadable:
            self.unreadable = False
            raise errors.StoreBusy("the server is away")
        return super().late(run)


async def test_a_store_that_is_lost_again_before_a_late_reply_is_read_fails_no_step(
    bench: EngineFixture,
) -> None:
    """The run would have failed for good, although it can continue when the store is back."""
    store = LostAgain(bench.store, 3)
    await bench.restart(store)
    bench.agent.on("Write.", Reply("first", usage=DOLLAR))
    with pytest.raises(errors.WriteFailed):
        await bench.start(WRITE)
    store.revive()

    with pytest.raises(errors.StoreBusy):
        await bench.engine.resume("run", WRITE)
    result = await bench.engine.resume("run", WRITE)

    assert result.state == {"draft": "first"}
    assert (result.spend.calls, result.spend.usd) == (1, 1.0)
    assert bench.agent.prompts == ["Write."]


async def test_a_late_reply_does_not_change_a_run_that_another_process_has_continued(
    bench: EngineFixture,
) -> None:
    """It has called the agent again, and that reply counts."""
    store = DyingStore(bench.store, 3)
    bench.agent.on("Write.", "late", "again")
    first = Engine(store, agents={"claude": bench.agent}, clock=bench.clock)
    with pytest.raises(errors.WriteFailed):
        await first.start(WRITE, name="run")
    # Its lease has ended; that it is stopped matters to no one.
    bench.store.leave(Owner(bench.store.row("run").owner or "", "", 0, ""))
    await bench.resume(WRITE)

    store.revive()
    result = await first.resume("run", WRITE)
    await first.close()

    assert result.state == {"draft": "again"}
    assert len(bench.store.late(bench.store.row("run").id)) == 1
    assert result.spend.calls == 2


async def test_a_call_that_was_stopped_when_the_store_was_lost_is_made_again(
    bench: EngineFixture,
) -> None:
    """That it was stopped is no reply: kept as one, it would fail the run."""
    store = DyingStore(bench.store, 3)
    await bench.restart(store)
    loop = SkippingLoop()

    async def hang(_request: AgentRequest) -> str:
        await loop.hang()
        return ""

    bench.agent.on("Write.", hang, "hello")
    workflow = one_step(write, timeout=60)
    with pytest.raises(errors.WriteFailed):
        await bench.start(workflow)

    store.revive()
    result = await bench.engine.resume("run", workflow)

    assert result.state == {"draft": "hello"}
    assert bench.store.late(bench.store.row("run").id) == {}
