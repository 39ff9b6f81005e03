"""signoff itself: a SQLite store, one engine, no observers unless a workload adds them.

The run directory is a projection off the critical path and is not written here; the
works whose name ends in `-dir` write it, and stop the clock when all of it is there.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from time import perf_counter, process_time, time
from typing import Any

from benchmarks import cold, figures, sample, stores
from benchmarks.payload import ARTIFACT, BIG_ARTIFACT, step_name, text
from benchmarks.sample import Figures
from benchmarks.sizes import Scale
from signoff import (
    AgentRequest,
    Choice,
    Edge,
    Option,
    Outcome,
    Reply,
    RunResult,
    Status,
    StepContext,
    StepDef,
    Workflow,
)
from signoff.core.step import Result
from signoff.runtime.engine import Engine
from signoff.runtime.ports import Call
from signoff.runtime.store_port import Store
from signoff.store.sqlite import SqliteStore
from signoff.views.run_directory.directory import Projection, RunDirectory

AGENT = "at-once"


class AtOnce:
    """Answers every prompt at once with a different text."""

    def __init__(self) -> None:
        self._asked = 0

    async def ask(self, _request: AgentRequest, _call: Call) -> Reply:
        """Returns the next text."""
        self._asked += 1
        return Reply(text(self._asked))


def open_store(folder: Path) -> Store:
    """Opens a file in the folder, or a schema that stands for the folder on a server."""
    if stores.VARIABLE not in os.environ:
        return SqliteStore(folder / "signoff.db")
    from signoff.store.postgres.store import PostgresStore

    return PostgresStore(f"{stores.server_url()}&schema={stores.schema_of(folder)}")


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Engine]:
    """Gives an engine on a database in the folder, and closes both."""
    store = open_store(folder)
    try:
        async with Engine(store, agents={AGENT: AtOnce()}) as engine:
            yield engine
    finally:
        store.close()


# W1


def chain_workflow(*, call: bool = False, marks: list[float] | None = None) -> Workflow:
    """Returns one step that is visited repeatedly, after one that creates the artifact."""

    async def begin(_ctx: StepContext, artifact: int) -> Result:
        return Outcome.OK, {"artifact": text(0, artifact), "steps": []}

    async def work(ctx: StepContext, length: int) -> Result:
        if marks is not None:
            marks.append(perf_counter())
        steps = ctx.step_state["steps"]
        name = step_name(len(steps))
        update: dict[str, Any] = {"steps": [*steps, name]}
        if call:
            reply = await ctx.ask(AGENT, f"Work on {name}.")
            update["reply"] = reply.text
        update["text"] = text(len(steps))
        return Outcome.ITERATE if len(steps) + 1 < length else Outcome.OK, update

    return Workflow(
        "chain",
        StepDef("begin", handler=begin, next={Outcome.OK: "work"}),
        StepDef(
            "work",
            handler=work,
            next={Outcome.ITERATE: Edge("work", bound=1_000_000), Outcome.OK: None},
        ),
    )


async def chain(folder: Path, scale: Scale, *, call: bool = False) -> Figures:
    """W1: a chain of steps."""
    workflow = chain_workflow(call=call)
    async with opened(folder) as engine:
        began = perf_counter()
        result = await engine.start(workflow, {"length": scale.steps, "artifact": ARTIFACT})
        took = perf_counter() - began
    _check_chain(result, scale.steps)
    return {"ms": took / scale.steps * 1000}


async def chain_with_call(folder: Path, scale: Scale) -> Figures:
    """W1 with a call: every step asks an agent, durably, before it returns."""
    return await chain(folder, scale, call=True)


async def chain_with_directory(folder: Path, scale: Scale) -> Figures:
    """W1 with the run directory: the clock stops when the last file is written."""
    workflow = chain_workflow()
    store = SqliteStore(folder / "signoff.db")
    projection = Projection(RunDirectory(folder / "runs", store))
    async with Engine(store, observers=[projection]) as engine:
        began = perf_counter()
        result = await engine.start(workflow, {"length": scale.steps, "artifact": ARTIFACT})
        returned = perf_counter() - began
        projection.close()
        written = perf_counter() - began
    store.close()
    _check_chain(result, scale.steps)
    assert (folder / "runs" / result.run / "state.json").exists()
    return {"ms": written / scale.steps * 1000, "returned_ms": returned / scale.steps * 1000}


def _check_chain(result: RunResult, length: int) -> None:
    assert result.status is Status.COMPLETED, result.reason
    assert len(result.state["steps"]) == length


# W2


def review_workflow() -> Workflow:
    """Returns a review loop: generate, critics at the same time, judge, refine."""

    async def generate(ctx: StepContext, rounds: int) -> Result:
        _ = rounds
        first = {"artifact": text(0, ARTIFACT)} if ctx.visit == 1 else {}
        return Outcome.OK, {**first, "draft": text(ctx.visit)}

    async def critique(ctx: StepContext, number: int) -> str:
        reply = await ctx.ask(AGENT, f"Review draft {ctx.visit} as critic {number}.")
        return reply.text

    async def critics(ctx: StepContext, critics: int) -> Result:
        return Outcome.OK, {"critiques": await ctx.map(range(critics), critique, key="critics")}

    async def judge(ctx: StepContext) -> Result:
        return Outcome.OK, {"verdict": text(ctx.visit + 1)}

    async def refine(ctx: StepContext, rounds: int) -> Result:
        more = ctx.visit < rounds
        return Outcome.ITERATE if more else Outcome.OK, {"draft": text(ctx.visit + 2)}

    again = Edge("generate", bound=1_000_000, starts_iteration=True)
    return Workflow(
        "review",
        StepDef("generate", handler=generate, next={Outcome.OK: "critics"}),
        StepDef("critics", handler=critics, next={Outcome.OK: "judge"}),
        StepDef("judge", handler=judge, next={Outcome.OK: "refine"}),
        StepDef("refine", handler=refine, next={Outcome.ITERATE: again, Outcome.OK: None}),
    )


async def review(folder: Path, scale: Scale) -> Figures:
    """W2: the review loop, with one agent call per critique."""
    workflow = review_workflow()
    async with opened(folder) as engine:
        began = perf_counter()
        result = await engine.start(workflow, {"rounds": scale.rounds, "critics": scale.critics})
        took = perf_counter() - began
    assert result.status is Status.COMPLETED, result.reason
    assert result.iteration == scale.rounds
    assert len(result.state["critiques"]) == scale.critics
    return {"s": took}


# W3


def fan_workflow() -> Workflow:
    """Returns one step that fans out and keeps how many came back."""

    async def item(_ctx: StepContext, number: int) -> str:
        await asyncio.sleep(0.01)
        return text(number)

    async def spread(ctx: StepContext, items: int) -> Result:
        texts = await ctx.map(range(items), item, key="items")
        return Outcome.OK, {"done": len(set(texts))}

    return Workflow("fan", StepDef("spread", handler=spread, next={Outcome.OK: None}))


async def fan_out(folder: Path, scale: Scale) -> Figures:
    """W3: a wide fan-out, every item recorded with its text."""
    workflow = fan_workflow()
    async with opened(folder) as engine:
        began = perf_counter()
        result = await engine.start(workflow, {"items": scale.items})
        took = perf_counter() - began
    assert result.state == {"done": scale.items}, result.reason
    return {"s": took}


# W4


def short_workflow() -> Workflow:
    """Returns a short chain whose texts differ from run to run."""

    async def work(ctx: StepContext, first: int, length: int) -> Result:
        more = ctx.visit < length
        steps = [*ctx.step_state.get("steps", []), step_name(ctx.visit)]
        update = {"steps": steps, "text": text(first + ctx.visit)}
        return Outcome.ITERATE if more else Outcome.OK, update

    again = Edge("work", bound=1_000_000)
    return Workflow(
        "short", StepDef("work", handler=work, next={Outcome.ITERATE: again, Outcome.OK: None})
    )


async def many_runs(folder: Path, scale: Scale) -> Figures:
    """W4: many runs in one process, started together."""
    workflow = short_workflow()
    async with opened(folder) as engine:

        async def run(number: int) -> RunResult:
            params = {"first": number * scale.run_steps, "length": scale.run_steps}
            return await engine.start(workflow, params, name=f"run-{number}")

        began = perf_counter()
        results = await asyncio.gather(*(run(n) for n in range(scale.runs)))
        took = perf_counter() - began
    _check_all(results, Status.COMPLETED)
    different = len({r.state["text"] for r in results})
    assert different == scale.runs, f"{different} different texts in {scale.runs} runs"
    return {"runs_per_s": scale.runs / took, "rss_mb": figures.rss_mb()}


async def many_runs_cpu(folder: Path, scale: Scale) -> Figures:
    """W4 by the CPU time that the process takes for it."""
    begun = process_time()
    await many_runs(folder, scale)
    return {"cpu_s": process_time() - begun}


def _check_all(results: Sequence[RunResult], wanted: Status) -> None:
    others = [f"{r.run} is {r.status}: {r.reason}" for r in results if r.status is not wanted]
    assert not others, f"{len(others)} of {len(results)} runs: {others[0]}"


# W5


def gate_workflow() -> Workflow:
    """Returns a draft that waits for a human before it is shipped."""

    async def gate(ctx: StepContext) -> Result:
        question = Choice("Ship this?", [Option("yes"), Option("no")])
        answer = await ctx.wait(question)
        return Outcome.OK, {"reply": answer.value}

    async def ship(_ctx: StepContext) -> Result:
        return Outcome.OK, {"text": text(1)}

    return Workflow(
        "gate",
        StepDef("gate", handler=gate, next={Outcome.OK: "ship"}),
        StepDef("ship", handler=ship, next={Outcome.OK: None}),
    )


async def prepare_gates(folder: Path, scale: Scale) -> Figures:
    """W5, before the restart: runs that reach their gate and stop there."""
    workflow = gate_workflow()
    async with opened(folder) as engine:
        starts = (engine.start(workflow, name=f"run-{n}") for n in range(scale.gates))
        results = await asyncio.gather(*starts)
    _check_all(results, Status.WAITING)
    return {}


async def gates(folder: Path, scale: Scale) -> Figures:
    """W5, after the restart: list pending requests; answer and resume one."""
    workflow = gate_workflow()
    began = perf_counter()
    assert workflow.digest
    digest_ms = (perf_counter() - began) * 1000
    before = figures.rss_mb()
    began = perf_counter()
    store = open_store(folder)
    async with Engine(store) as engine:
        open_ms = (perf_counter() - began) * 1000
        cost_mb = figures.rss_mb() - before

        began = perf_counter()
        runs = store.rows(status=[Status.WAITING])
        runs_ms = (perf_counter() - began) * 1000
        began = perf_counter()
        waiting = store.waiting()
        list_ms = (perf_counter() - began) * 1000
        assert len(runs) == len(waiting) > scale.gates // 2

        item = waiting[len(waiting) // 2]
        shown = store.item(item.id).digest
        began = perf_counter()
        store.answer(item.id, json.dumps({"value": "yes"}), "bench", time(), shown)
        result = await engine.resume(item.run, workflow)
        resume_ms = (perf_counter() - began) * 1000
        assert result.status is Status.COMPLETED, result.reason
    rss_mb = figures.rss_mb()
    store.close()
    return {
        "digest_ms": digest_ms,
        "open_ms": open_ms,
        "list_runs_ms": runs_ms,
        "list_ms": list_ms,
        "resume_ms": resume_ms,
        "cost_mb": cost_mb,
        "rss_mb": rss_mb,
    }


# W7


async def history(folder: Path, scale: Scale) -> Figures:
    """W7: a long run over an artifact that stays the same."""
    marks: list[float] = []
    workflow = chain_workflow(marks=marks)
    async with opened(folder) as engine:
        given = {"length": scale.history, "artifact": BIG_ARTIFACT}
        result = await engine.start(workflow, given)
        marks.append(perf_counter())
    _check_chain(result, scale.history)
    return {**figures.growth(marks, scale), "disk_mb": figures.disk_mb(folder)}


# W6


async def start_up(folder: Path, scale: Scale) -> Figures:
    """W6: importing what a first workflow needs, and the commands typed most often."""
    names = "from signoff import Workflow, StepDef, Outcome, run"
    program = str(Path(sys.executable).with_name("signoff"))
    importing = cold.importing(names)
    return {
        **importing(folder, scale),
        **cold.commands(program, folder, scale),
        **cold.session_commands(program, folder, scale),
    }


def elsewhere(module: str, name: str) -> sample.AsyncWork:
    """Returns a workload of another module, which is imported only when the workload runs.

    Importing that module earlier would make garbage collection slower for all other workloads.
    """

    async def work(folder: Path, scale: Scale) -> Figures:
        done: sample.AsyncWork = getattr(import_module(f"benchmarks.{module}"), name)
        return await done(folder, scale)

    return work


WORKS: dict[str, sample.AsyncWork] = {
    "W1": chain,
    "W1-call": chain_with_call,
    "W1-dir": chain_with_directory,
    "W2": review,
    "W3": fan_out,
    "W4": many_runs,
    "W4-cpu": many_runs_cpu,
    "W5-prepare": prepare_gates,
    "W5": gates,
    "W6": start_up,
    "W7": history,
    "W8": elsewhere("guarded", "guarded"),
    "W9": elsewhere("critics", "critics"),
    "W10": elsewhere("contract_steps", "contract_steps"),
    "W10-items": elsewhere("contract_steps", "contract_items"),
    "W11": elsewhere("sessions", "automatic_session"),
    "W12": elsewhere("observed", "observed"),
    "W13": elsewhere("observed", "traced"),
    "W14": elsewhere("all_metrics", "all_metrics"),
    "W15": elsewhere("reviews", "reviews"),
    "W16": elsewhere("web_page", "web_page"),
    "W16-engine": elsewhere("web_page", "watched_engine"),
}

if __name__ == "__main__":
    sample.main({name: sample.on_loop(work) for name, work in WORKS.items()})
