"""Burr with its SQLite persisters.

The chain and the long run use the plain persister, which is the faster one there; fan-outs
and concurrent runs need the asynchronous one. `BURR_JOURNAL_MODE=WAL` in the environment
puts connections into WAL first, which Burr leaves to its user and which makes it faster.
Children of a parallel action are given ids of their own per round, so that all of them are
recorded.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import aiosqlite
from burr.core import ApplicationBuilder, ApplicationContext, Condition, State, action, default
from burr.core.parallelism import RunnableGraph, SubGraphTask, TaskBasedParallelAction
from burr.core.persistence import SQLitePersister
from burr.integrations.persisters.b_aiosqlite import AsyncSQLitePersister

from benchmarks import cold, figures, sample
from benchmarks.payload import ARTIFACT, BIG_ARTIFACT, step_name, text
from benchmarks.sample import Figures
from benchmarks.sizes import Scale

AsyncWork = Callable[[AsyncSQLitePersister, Scale], Awaitable[Figures]]


def chain(folder: Path, scale: Scale, *, call: bool = False) -> Figures:
    """W1: one action, visited repeatedly."""
    app = _chain_app(_persister(folder), scale.steps, ARTIFACT, call=call)
    began = perf_counter()
    _action, _result, state = app.run(halt_after=["end"])
    took = perf_counter() - began
    assert len(state["steps"]) == scale.steps
    return {"ms": took / scale.steps * 1000}


def chain_with_call(folder: Path, scale: Scale) -> Figures:
    """W1 with a call; the reply is recorded with its step, not before."""
    return chain(folder, scale, call=True)


def review(folder: Path, scale: Scale) -> Figures:
    """W2: critiques as parallel sub-applications."""
    return asyncio.run(_on_loop(_review, folder, scale))


def fan_out(folder: Path, scale: Scale) -> Figures:
    """W3: one sub-application per item."""
    return asyncio.run(_on_loop(_fan_out, folder, scale))


def many_runs(folder: Path, scale: Scale) -> Figures:
    """W4: one application per run, all on one persister."""
    return asyncio.run(_on_loop(_many_runs, folder, scale))


def prepare_gates(folder: Path, scale: Scale) -> Figures:
    """W5, before the restart: applications halted before their gate."""
    persister = _persister(folder)
    for number in range(scale.gates):
        _gate_app(persister, f"run-{number}").run(halt_before=["gate"])
    return {}


def gates(folder: Path, scale: Scale) -> Figures:
    """W5, after the restart: load every application to see whether it is waiting; resume one."""
    persister = _persister(folder)
    began = perf_counter()
    waiting = [
        name
        for name in persister.list_app_ids(None)
        if (persister.load(None, name) or {}).get("position") == "draft"
    ]
    listed = perf_counter() - began
    assert len(waiting) > scale.gates // 2

    run = waiting[len(waiting) // 2]
    began = perf_counter()
    app = _gate_app(persister, run)
    _action, _result, state = app.run(halt_after=["ship"], inputs={"answer": "yes"})
    resumed = perf_counter() - began
    assert state["reply"] == "yes"
    return {
        "list_ms": listed * 1000,
        "resume_ms": resumed * 1000,
        "rss_mb": figures.rss_mb(),
    }


def history(folder: Path, scale: Scale) -> Figures:
    """W7: the long run."""
    marks: list[float] = []
    persister = _persister(folder)
    _chain_app(persister, scale.history, BIG_ARTIFACT, marks=marks).run(halt_after=["end"])
    marks.append(perf_counter())
    persister.cleanup()
    return {**figures.growth(marks[: scale.history + 1], scale), "disk_mb": figures.disk_mb(folder)}


def _chain_app(
    persister: SQLitePersister,
    length: int,
    artifact: int,
    *,
    call: bool = False,
    marks: list[float] | None = None,
) -> Any:
    @action(reads=["steps"], writes=["steps", "reply", "text"])
    def work(state: State) -> State:
        if marks is not None:
            marks.append(perf_counter())
        number = len(state["steps"])
        reply = text(number + 1) if call else ""
        steps = [*state["steps"], step_name(number)]
        return state.update(steps=steps, reply=reply, text=text(number))

    return (
        ApplicationBuilder()
        .with_actions(work=work, end=_end)
        .with_transitions(
            ("work", "work", Condition.lmda(lambda s: len(s["steps"]) < length, ["steps"])),
            ("work", "end", default),
        )
        .with_entrypoint("work")
        .with_state(artifact=text(0, artifact), steps=[], reply="", text="")
        .with_state_persister(persister)
        .with_identifiers(app_id="run")
        .build()
    )


def _gate_app(persister: SQLitePersister, name: str) -> Any:
    return (
        ApplicationBuilder()
        .with_actions(draft=_draft, gate=_gate, ship=_ship)
        .with_transitions(("draft", "gate", default), ("gate", "ship", default))
        .initialize_from(
            persister,
            resume_at_next_action=True,
            default_state={"artifact": text(0, ARTIFACT), "reply": "", "text": ""},
            default_entrypoint="draft",
        )
        .with_state_persister(persister)
        .with_identifiers(app_id=name)
        .build()
    )


@action(reads=[], writes=[])
def _end(state: State) -> State:
    return state


@action(reads=[], writes=["text"])
def _draft(state: State) -> State:
    return state.update(text=text(0))


@action(reads=[], writes=["reply"])
def _gate(state: State, answer: str) -> State:
    return state.update(reply=answer)


@action(reads=[], writes=["text"])
def _ship(state: State) -> State:
    return state.update(text=text(1))


class _Parallel(TaskBasedParallelAction):  # type: ignore[misc]  # Burr is not installed here
    """Runs one action over numbers, each as a recorded application."""

    def __init__(self, one: Any, count: int) -> None:
        super().__init__()
        self._one = RunnableGraph.create(one)
        self._count = count

    async def tasks(
        self, state: State, context: ApplicationContext, _inputs: dict[str, Any]
    ) -> AsyncGenerator[SubGraphTask, None]:
        """Yields one task per number."""
        for number in range(self._count):
            yield SubGraphTask(
                graph=self._one,
                inputs={},
                state=State({"number": number, "text": ""}),
                application_id=f"{context.app_id}:{state['turn']}:{number}",
                state_persister=context.state_persister,
            )

    async def reduce(self, state: State, states: AsyncGenerator[State, None]) -> State:
        """Collects what the tasks returned."""
        return state.update(texts=[done["text"] async for done in states])

    def is_async(self) -> bool:
        """Makes the tasks run on the event loop."""
        return True

    @property
    def reads(self) -> list[str]:
        """Names what is read."""
        return ["turn"]

    @property
    def writes(self) -> list[str]:
        """Names what is written."""
        return ["texts"]


async def _on_loop(work: AsyncWork, folder: Path, scale: Scale) -> Figures:
    async with _async_persister(folder) as persister:
        return await work(persister, scale)


async def _review(persister: AsyncSQLitePersister, scale: Scale) -> Figures:
    @action(reads=[], writes=["draft"])
    async def generate(state: State) -> State:
        return state.update(draft=text(state["turn"]))

    @action(reads=["number"], writes=["text"])
    async def critique(state: State) -> State:
        return state.update(text=text(state["number"]))

    @action(reads=["texts"], writes=["verdict"])
    async def judge(state: State) -> State:
        return state.update(verdict=text(state["turn"] + 1))

    @action(reads=["turn"], writes=["draft", "turn"])
    async def refine(state: State) -> State:
        return state.update(draft=text(state["turn"] + 2), turn=state["turn"] + 1)

    app = await (
        ApplicationBuilder()
        .with_actions(
            generate=generate,
            critics=_Parallel(critique, scale.critics),
            judge=judge,
            refine=refine,
            end=_end,
        )
        .with_transitions(
            ("generate", "critics", default),
            ("critics", "judge", default),
            ("judge", "refine", default),
            (
                "refine",
                "generate",
                Condition.lmda(lambda s: s["turn"] < scale.rounds, ["turn"]),
            ),
            ("refine", "end", default),
        )
        .with_entrypoint("generate")
        .with_state(artifact=text(0, ARTIFACT), turn=0, draft="", verdict="", texts=[])
        .with_state_persister(persister)
        .with_identifiers(app_id="run")
        .abuild()
    )
    began = perf_counter()
    _action, _result, state = await app.arun(halt_after=["end"])
    took = perf_counter() - began
    assert state["turn"] == scale.rounds
    return {"s": took}


async def _fan_out(persister: AsyncSQLitePersister, scale: Scale) -> Figures:
    @action(reads=["number"], writes=["text"])
    async def item(state: State) -> State:
        await asyncio.sleep(0.01)
        return state.update(text=text(state["number"]))

    app = await (
        ApplicationBuilder()
        .with_actions(items=_Parallel(item, scale.items), end=_end)
        .with_transitions(("items", "end", default))
        .with_entrypoint("items")
        .with_state(turn=0, texts=[])
        .with_state_persister(persister)
        .with_identifiers(app_id="run")
        .abuild()
    )
    began = perf_counter()
    _action, _result, state = await app.arun(halt_after=["items"])
    took = perf_counter() - began
    assert len(state["texts"]) == scale.items
    return {"s": took}


async def _many_runs(persister: AsyncSQLitePersister, scale: Scale) -> Figures:

    @action(reads=["steps"], writes=["steps", "text"])
    async def work(state: State) -> State:
        steps = [*state["steps"], step_name(len(state["steps"]))]
        return state.update(steps=steps, text=text(state["first"] + len(steps)))

    @action(reads=["steps"], writes=["steps", "text"])
    async def last(state: State) -> State:
        return state.update(steps=[*state["steps"], "last"], text=text(state["first"]))

    async def run(number: int) -> None:
        more = Condition.lmda(lambda s: len(s["steps"]) < scale.run_steps - 1, ["steps"])
        app = await (
            ApplicationBuilder()
            .with_actions(work=work, last=last)
            .with_transitions(("work", "work", more), ("work", "last", default))
            .with_entrypoint("work")
            .with_state(steps=[], text="", first=number * scale.run_steps)
            .with_state_persister(persister)
            .with_identifiers(app_id=f"run-{number}")
            .abuild()
        )
        _action, _result, state = await app.arun(halt_after=["last"])
        assert len(state["steps"]) == scale.run_steps

    began = perf_counter()
    await asyncio.gather(*(run(n) for n in range(scale.runs)))
    took = perf_counter() - began
    return {"runs_per_s": scale.runs / took, "rss_mb": figures.rss_mb()}


def _persister(folder: Path) -> SQLitePersister:
    path = str(folder / "peer.db")
    connection = sqlite3.connect(path)
    for pragma in _pragmas():
        connection.execute(pragma)
    persister = SQLitePersister(path, connection=connection)
    persister.initialize()
    return persister


@asynccontextmanager
async def _async_persister(folder: Path) -> AsyncGenerator[AsyncSQLitePersister, None]:
    async with aiosqlite.connect(folder / "peer.db") as connection:
        for pragma in _pragmas():
            await connection.execute(pragma)
        persister = AsyncSQLitePersister(connection)
        await persister.initialize()
        yield persister


def _pragmas() -> tuple[str, str]:
    mode = os.environ.get("BURR_JOURNAL_MODE", "DELETE")
    return f"PRAGMA journal_mode={mode}", "PRAGMA synchronous=FULL"


IMPORTS = """
from burr.core import ApplicationBuilder, action
from burr.core.persistence import SQLitePersister
"""

WORKS = {
    "W1": chain,
    "W1-call": chain_with_call,
    "W2": review,
    "W3": fan_out,
    "W4": many_runs,
    "W5-prepare": prepare_gates,
    "W5": gates,
    "W6": cold.importing(IMPORTS),
    "W7": history,
}

if __name__ == "__main__":
    sample.main(WORKS)
