import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from signoff.core import events as ev
from signoff.core.context import StepContext
from signoff.core.effects import AgentRequest, Reply
from signoff.core.errors import LeaseLost, SignoffError, StoreBusy, WriteFailed
from signoff.core.outcome import Outcome, Status
from signoff.core.remedies import Resume
from signoff.core.requests import Question
from signoff.core.spend import LedgerEntry, Usage
from signoff.core.step import Edge, StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.environment import Secrets
from signoff.runtime.journal import CHECKPOINT_FROM_BYTES, GroupWriter, RunJournal
from signoff.runtime.ports import Notice, Recorded
from signoff.runtime.store_port import Commit, CommitResult, Owner
from signoff.store.sqlite import MemoryStore
from signoff.testing import FrozenClock, WrappedStore
from tests.unit.runtime.engine_fixture import (
    OK,
    CountingStore,
    DyingStore,
    EngineFixture,
    Work,
    chain,
    one_step,
)

THIEF = Owner("thief", "elsewhere", 1, "")


async def ask(ctx: StepContext) -> Work:
    reply = await ctx.ask("claude", f"Write {ctx.step_id}.")
    return OK, {ctx.step_id: reply.text}


def plain(ctx: StepContext) -> Work:
    return OK, {ctx.step_id: "done"}


class LedgerWatch(WrappedStore):
    """Notes what is entered into the ledger."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.entries: list[LedgerEntry] = []

    def commit(self, commits: Sequence[Commit], *, wait: bool = True) -> list[CommitResult]:
        self.entries += [entry for commit in commits for entry in commit.ledger]
        return super().commit(commits, wait=wait)


# How many commits work costs


@pytest.mark.parametrize("handler", [ask, plain])
@pytest.mark.usefixtures("fast_disk")
async def test_a_step_costs_one_commit(handler: Any) -> None:
    """Each commit waits for the disk; two of them make a chain twice as slow."""
    bench = EngineFixture(store=CountingStore())
    bench.agent.on("Write", "text")
    store = bench.store
    assert isinstance(store, CountingStore)

    await bench.engine.start(chain(*[handler] * 10), name="ten")
    ten = store.commits
    await bench.engine.start(chain(*[handler] * 30), name="thirty")

    assert store.commits - ten - ten == 20
    await bench.close()


@pytest.mark.usefixtures("fast_disk")
async def test_concurrent_effects_share_few_commits() -> None:
    """A hundred critiques that come in together are one write."""
    bench = EngineFixture(store=CountingStore())
    store = bench.store
    assert isinstance(store, CountingStore)

    async def item(ctx: StepContext, number: int) -> str:
        return (await ctx.ask("claude", f"Write {number}.")).text

    async def work(ctx: StepContext) -> Work:
        return OK, {"texts": await ctx.map(range(100), item)}

    async def soon(_request: AgentRequest) -> str:
        await asyncio.sleep(0)
        return "text"

    bench.agent.on("Write", soon)

    result = await bench.start(one_step(work))

    assert result.ok
    assert store.commits < 10
    await bench.close()


async def test_the_ledger_is_written_when_the_run_comes_to_rest() -> None:
    """Until then it is in the journal; another row in every commit would slow each step down."""
    bench = EngineFixture(store=(store := LedgerWatch()))
    bench.agent.on("Write", Reply("text", usage=Usage(tokens_in=2, tokens_out=3, usd=0.5)))

    async def item(ctx: StepContext, number: int) -> str:
        return (await ctx.ask("claude", f"Write {number}.")).text

    async def work(ctx: StepContext) -> Work:
        return OK, {"texts": await ctx.map(range(4), item, key="items")}

    await bench.start(one_step(work))

    entry = LedgerEntry("work", "claude", "", 4, 8, 12, 2.0, 0, 0, 0, 4)
    assert store.entries == [entry]
    assert store.ledger(store.row("run").id) == [entry]
    await bench.close()


@pytest.mark.usefixtures("fast_disk")
async def test_a_wait_shares_the_commit_of_what_led_to_it() -> None:
    """The request, the wish to wait and letting go are one transaction."""
    bench = EngineFixture(store=CountingStore())
    store = bench.store
    assert isinstance(store, CountingStore)

    async def work(ctx: StepContext) -> Work:
        await ctx.wait(Question("Good?"))
        return OK, {}

    await bench.start(one_step(work))

    assert store.commits == 2
    await bench.close()


# What is durable


async def test_a_step_is_durable_before_the_next_ones_handler_acts(bench: EngineFixture) -> None:
    """A plain function may do anything outside; what led to it must not be lost then."""
    known: list[list[str]] = []

    def look(ctx: StepContext) -> Work:
        known.append([e.way for e in bench.events(ev.StepFinished)])
        return OK, {}

    await bench.start(chain(look, look, look))

    assert known == [[], ["step1/ok"], ["step1/ok", "step2/ok"]]


async def test_watchers_hear_of_what_is_durable_and_of_nothing_else() -> None:
    """A view that shows a step as done and forgets it after a crash has lied."""
    heard: list[int] = []

    class Watcher:
        def notice(self, notice: Notice) -> None:
            if isinstance(notice, Recorded):
                heard.append(len(notice.events))
                assert sum(heard) == len(bench.events())

    bench = EngineFixture(observers=[Watcher()])
    bench.agent.on("Write", "text")

    await bench.start(chain(ask, ask))

    assert sum(heard) == len(bench.events())
    await bench.close()


@pytest.mark.parametrize("at", range(1, 6))
async def test_a_disk_that_fails_stops_the_run_and_nothing_after_its_last_commit_counts(
    bench: EngineFixture, at: int
) -> None:
    """It is better to stop than to keep paying for work that is lost."""
    bench.agent.on("Write", "text")
    workflow = chain(ask, plain, ask)

    await bench.start_and_die(workflow, at=at)

    asked = len(bench.agent.prompts)
    if at == 1:
        assert bench.store.rows() == []
        return
    durable = len(bench.events(ev.EffectStarted))
    assert asked <= durable
    assert bench.store.row("run").head == at - 1
    result = await bench.resume(workflow)
    assert result.state == {"step1": "text", "step2": "done", "step3": "text"}


async def test_each_run_that_a_failed_disk_stops_says_how_to_resume_it(
    bench: EngineFixture,
) -> None:
    """They share a transaction and its error, but a user resumes them one by one."""
    bench.agent.on("Write", "text")
    await bench.restart(DyingStore(bench.store, 3))

    ended = await asyncio.gather(
        *(bench.engine.start(chain(ask, ask), name=name) for name in ("one", "two")),
        return_exceptions=True,
    )

    remedies = [getattr(error, "remedies", ()) for error in ended]
    assert remedies == [(Resume("one"),), (Resume("two"),)]


async def test_a_run_that_a_failed_disk_could_not_even_start_has_nothing_to_resume(
    bench: EngineFixture,
) -> None:
    """The command would not find it."""
    await bench.restart(DyingStore(bench.store, 1))

    with pytest.raises(WriteFailed) as caught:
        await bench.start(chain(ask))

    assert caught.value.remedies == ()


# Losing the run


async def test_a_runner_that_lost_its_run_stops_and_adds_nothing(bench: EngineFixture) -> None:
    """Two runners on one run would both pay, and mix two histories into one."""

    def steal(_request: AgentRequest) -> str:
        run = bench.store.row("run").id
        bench.store.take(run, THIEF, lambda _owner: False)
        return "text"

    bench.agent.on("Write step1", steal).on("Write", "text")

    with pytest.raises(LeaseLost, match="'run'"):
        await bench.start(chain(ask, ask))

    assert bench.agent.prompts == ["Write step1."]
    assert [e.tag for e in bench.events()] == ["run_started", "effect_started"]
    assert bench.store.row("run").owner == "thief"


@pytest.mark.parametrize("then", [StoreBusy("away"), WriteFailed("disk full")])
async def test_a_run_that_is_lost_stays_lost_when_the_store_fails_as_well(
    then: SignoffError,
) -> None:
    """A paid reply would stay in the memory of a process that does not continue the run."""
    store, clock = MemoryStore(), FrozenClock()
    journal = RunJournal("run", GroupWriter(store, clock), clock, Secrets.of({}))
    rescued: list[type[object]] = []

    journal.fail(LeaseLost("another process has it"))
    journal.fail(then)
    with pytest.raises(LeaseLost):
        journal.record(ev.StepBegun(), lambda: rescued.append(type(journal.error)))

    assert rescued == [LeaseLost]
    store.close()


async def test_one_run_that_is_lost_does_not_stop_the_others(bench: EngineFixture) -> None:
    """They share a transaction, not a fate."""

    async def item(ctx: StepContext) -> Work:
        reply = await ctx.ask("claude", f"Write {ctx.run}.")
        return OK, {"text": reply.text}

    async def soon(request: AgentRequest) -> str:
        if "run3" in request.prompt:
            run = bench.store.row("run3").id
            bench.store.take(run, THIEF, lambda _owner: False)
        await asyncio.sleep(0)
        return "text"

    bench.agent.on("Write", soon)
    workflow = one_step(item)

    ended = await asyncio.gather(
        *(bench.engine.start(workflow, name=f"run{n}") for n in range(6)), return_exceptions=True
    )

    assert isinstance(ended[3], LeaseLost)
    others = [e for n, e in enumerate(ended) if n != 3]
    assert all(getattr(e, "ok", False) for e in others)


# Checkpoints


async def test_a_long_run_is_resumed_from_a_checkpoint(bench: EngineFixture) -> None:
    """Folding ten thousand steps for every answer would make waiting runs expensive."""
    chunk = "x" * 5000

    def work(ctx: StepContext) -> Work:
        outcome = OK if ctx.visit == 100 else Outcome.ITERATE
        return outcome, {"text": f"{ctx.visit} {chunk}"}

    async def gate(ctx: StepContext) -> Work:
        await ctx.wait(Question("Good?"))
        return OK, {}

    workflow = _looping(work, gate)
    await bench.start(workflow)

    stored = bench.store.load("run")
    assert stored.checkpoint is not None
    assert sum(len(row.events) for row in stored.tail) < 2 * CHECKPOINT_FROM_BYTES
    bench.answer("yes")
    result = await bench.resume(workflow)
    assert result.ok
    assert result.state["text"] == f"100 {chunk}"


async def test_many_short_lives_make_a_checkpoint_as_one_long_one_does(
    bench: EngineFixture,
) -> None:
    """A run answered a thousand times is a thousand processes that each add a little."""
    chunk = "x" * 5000

    async def work(ctx: StepContext) -> Work:
        answer = await ctx.wait(Question(f"Round {ctx.visit}?"))
        outcome = OK if ctx.visit == 100 else Outcome.ITERATE
        return outcome, {"text": f"{answer.value} {chunk}"}

    workflow = _looping(work)
    result = await bench.start(workflow)
    while result.status is Status.WAITING:
        bench.answer("yes")
        result = await bench.engine.resume("run", workflow)

    assert result.ok
    tail = bench.store.load("run").tail
    assert sum(len(row.events) for row in tail) < 2 * CHECKPOINT_FROM_BYTES


async def test_results_of_a_fan_out_are_not_copied_into_a_checkpoint(bench: EngineFixture) -> None:
    """The state holds them until the step ends: a checkpoint would write all of them twice."""
    chunk = "x" * 5000

    async def item(_ctx: StepContext, number: int) -> str:
        return f"{number} {chunk}"

    async def work(ctx: StepContext) -> Work:
        texts = await ctx.map(range(100), item, key="items")
        await ctx.wait(Question("Good?"))
        return OK, {"texts": len(texts)}

    workflow = _looping(work)
    await bench.start(workflow)

    stored = bench.store.load("run")
    assert sum(len(row.events) for row in stored.tail) > CHECKPOINT_FROM_BYTES
    assert stored.checkpoint is None
    bench.answer("yes")
    result = await bench.resume(workflow)
    assert result.state == {"texts": 100}


def _looping(*handlers: Any) -> Workflow:
    again = Edge("step1", bound=1000)
    ids = [f"step{n}" for n in range(1, len(handlers) + 1)]
    follows = [*ids[1:], None]
    return Workflow(
        "flow",
        *(
            StepDef(id_, handler=handler, next={OK: then, Outcome.ITERATE: again})
            for id_, handler, then in zip(ids, handlers, follows, strict=True)
        ),
    )
