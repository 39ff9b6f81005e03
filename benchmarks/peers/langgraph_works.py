"""LangGraph with its SQLite saver, or its PostgreSQL saver if a server is given; durability sync.

The chain and the long run use the plain saver, which is the faster one there; fan-outs
and concurrent runs need the asynchronous one. Results are kept in the state, which is how
LangGraph hands them on.
"""

from __future__ import annotations

import asyncio
import operator
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

from benchmarks import cold, figures, sample, stores
from benchmarks.payload import ARTIFACT, BIG_ARTIFACT, step_name, text
from benchmarks.sample import Figures
from benchmarks.sizes import Scale

CONNECTIONS = 8
"""Of the pool that fan-outs and concurrent runs share; one connection would be slower."""


@contextmanager
def open_saver(folder: Path) -> Iterator[Any]:
    """Opens the plain saver: a file in the folder, or a schema that stands for it."""
    if stores.VARIABLE not in os.environ:
        with SqliteSaver.from_conn_string(str(folder / "peer.db")) as saver:
            yield saver
        return
    from langgraph.checkpoint.postgres import PostgresSaver

    with PostgresSaver.from_conn_string(_server(folder)) as saver:
        yield saver


@asynccontextmanager
async def open_async_saver(folder: Path) -> AsyncIterator[Any]:
    """Opens the asynchronous saver."""
    if stores.VARIABLE not in os.environ:
        async with AsyncSqliteSaver.from_conn_string(str(folder / "peer.db")) as saver:
            yield saver
        return
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool

    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    pool = AsyncConnectionPool(
        _server(folder), kwargs=options, min_size=CONNECTIONS, max_size=CONNECTIONS, open=False
    )
    async with pool:
        yield AsyncPostgresSaver(pool)


def _server(folder: Path) -> str:
    import psycopg

    schema = stores.schema_of(folder)
    with psycopg.connect(stores.server_url(), autocommit=True) as db:
        db.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    return f"{stores.server_url()}&options=-csearch_path%3D{schema}"


class Chain(TypedDict):
    artifact: str
    steps: list[str]
    reply: str
    text: str
    length: int


class Review(TypedDict):
    artifact: str
    turn: int
    turns: int
    critics: int
    number: int
    draft: str
    critiques: Annotated[dict[int, str], lambda _old, new: {**_old, **new}]
    verdict: str


class FanOut(TypedDict):
    number: int
    items: int
    texts: Annotated[list[str], operator.add]


def chain(folder: Path, scale: Scale, *, call: bool = False) -> Figures:
    """W1: one node, visited repeatedly."""
    with open_saver(folder) as saver:
        saver.setup()
        graph = _chain_graph(saver, call=call)
        given = _chain_input(scale.steps, ARTIFACT)
        began = perf_counter()
        end = graph.invoke(given, _config("run", scale.steps), durability="sync")
        took = perf_counter() - began
    assert len(end["steps"]) == scale.steps
    return {"ms": took / scale.steps * 1000}


def chain_with_call(folder: Path, scale: Scale) -> Figures:
    """W1 with a call; the reply is recorded with its step, not before."""
    return chain(folder, scale, call=True)


def review(folder: Path, scale: Scale) -> Figures:
    """W2: critiques as parallel sends."""
    return asyncio.run(_review(folder, scale))


def fan_out(folder: Path, scale: Scale) -> Figures:
    """W3: one send per item."""
    return asyncio.run(_fan_out(folder, scale))


def many_runs(folder: Path, scale: Scale) -> Figures:
    """W4: one thread id per run, all on one saver."""
    return asyncio.run(_many_runs(folder, scale))


def prepare_gates(folder: Path, scale: Scale) -> Figures:
    """W5, before the restart: runs that interrupt themselves."""
    with open_saver(folder) as saver:
        saver.setup()
        graph = _gate_graph(saver)
        for number in range(scale.gates):
            graph.invoke(_chain_input(1, ARTIFACT), _config(f"run-{number}"), durability="sync")
    return {}


def gates(folder: Path, scale: Scale) -> Figures:
    """W5, after the restart: walk the newest checkpoints for interrupts; resume one."""
    with open_saver(folder) as saver:
        graph = _gate_graph(saver)
        began = perf_counter()
        waiting = _interrupted(saver)
        listed = perf_counter() - began
        assert len(waiting) > scale.gates // 2

        run = waiting[len(waiting) // 2]
        began = perf_counter()
        end = graph.invoke(Command(resume="yes"), _config(run), durability="sync")
        resumed = perf_counter() - began
        assert end["reply"] == "yes"
    return {
        "list_ms": listed * 1000,
        "resume_ms": resumed * 1000,
        "rss_mb": figures.rss_mb(),
    }


def history(folder: Path, scale: Scale) -> Figures:
    """W7: the long run."""
    marks: list[float] = []
    with open_saver(folder) as saver:
        saver.setup()
        graph = _chain_graph(saver, marks=marks)
        given = _chain_input(scale.history, BIG_ARTIFACT)
        graph.invoke(given, _config("run", scale.history), durability="sync")
        marks.append(perf_counter())
    return {**figures.growth(marks, scale), "disk_mb": figures.disk_mb(folder)}


def _chain_graph(saver: Any, *, call: bool = False, marks: list[float] | None = None) -> Any:
    def work(state: Chain) -> dict[str, Any]:
        if marks is not None:
            marks.append(perf_counter())
        number = len(state["steps"])
        update: dict[str, Any] = {"steps": [*state["steps"], step_name(number)]}
        if call:
            update["reply"] = text(number + 1)
        return {**update, "text": text(number)}

    def onward(state: Chain) -> str:
        return END if len(state["steps"]) >= state["length"] else "work"

    graph = StateGraph(Chain)
    graph.add_node("work", work)
    graph.add_edge(START, "work")
    graph.add_conditional_edges("work", onward, ["work", END])
    return graph.compile(checkpointer=saver)


def _gate_graph(saver: Any) -> Any:
    def gate(_state: Chain) -> dict[str, Any]:
        return {"reply": interrupt("Ship this?")}

    def ship(_state: Chain) -> dict[str, Any]:
        return {"text": text(1)}

    graph = StateGraph(Chain)
    graph.add_node("gate", gate)
    graph.add_node("ship", ship)
    graph.add_edge(START, "gate")
    graph.add_edge("gate", "ship")
    graph.add_edge("ship", END)
    return graph.compile(checkpointer=saver)


def _interrupted(saver: SqliteSaver) -> list[str]:
    """Returns the threads whose newest checkpoint holds an interrupt."""
    newest: dict[str, bool] = {}
    for found in saver.list(None):
        thread = found.config["configurable"]["thread_id"]
        if thread not in newest:
            writes = found.pending_writes or []
            newest[thread] = any(channel == "__interrupt__" for _task, channel, _value in writes)
    return [thread for thread, waits in newest.items() if waits]


async def _review(folder: Path, scale: Scale) -> Figures:
    async with open_async_saver(folder) as saver:
        await saver.setup()
        graph = _review_graph(saver)
        given = {
            "artifact": text(0, ARTIFACT),
            "turn": 0,
            "turns": scale.rounds,
            "critics": scale.critics,
            "critiques": {},
        }
        began = perf_counter()
        config = _config("run", scale.rounds * 4)
        end = await graph.ainvoke(given, config, durability="sync")
        took = perf_counter() - began
    assert end["turn"] == scale.rounds
    return {"s": took}


def _review_graph(saver: Any) -> Any:
    async def generate(state: Review) -> dict[str, Any]:
        return {"draft": text(state["turn"])}

    async def critique(state: Review) -> dict[str, Any]:
        return {"critiques": {state["number"]: text(state["number"])}}

    async def judge(state: Review) -> dict[str, Any]:
        return {"verdict": text(state["turn"] + 1)}

    async def refine(state: Review) -> dict[str, Any]:
        return {"draft": text(state["turn"] + 2), "turn": state["turn"] + 1}

    def critics(state: Review) -> list[Send]:
        turn = {"turn": state["turn"]}
        return [Send("critique", {**turn, "number": n}) for n in range(state["critics"])]

    def onward(state: Review) -> str:
        return END if state["turn"] >= state["turns"] else "generate"

    graph = StateGraph(Review)
    for node in (generate, critique, judge, refine):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "generate")
    graph.add_conditional_edges("generate", critics, ["critique"])
    graph.add_edge("critique", "judge")
    graph.add_edge("judge", "refine")
    graph.add_conditional_edges("refine", onward, ["generate", END])
    return graph.compile(checkpointer=saver)


async def _fan_out(folder: Path, scale: Scale) -> Figures:
    async def item(state: FanOut) -> dict[str, Any]:
        await asyncio.sleep(0.01)
        return {"texts": [text(state["number"])]}

    def sends(state: FanOut) -> list[Send]:
        return [Send("item", {"number": n}) for n in range(state["items"])]

    async with open_async_saver(folder) as saver:
        await saver.setup()
        graph = StateGraph(FanOut)
        graph.add_node("item", item)
        graph.add_conditional_edges(START, sends, ["item"])
        graph.add_edge("item", END)
        compiled = graph.compile(checkpointer=saver)
        given = {"items": scale.items, "texts": []}
        began = perf_counter()
        end = await compiled.ainvoke(given, _config("run"), durability="sync")
        took = perf_counter() - began
    assert len(end["texts"]) == scale.items
    return {"s": took}


async def _many_runs(folder: Path, scale: Scale) -> Figures:
    async def work(state: Chain) -> dict[str, Any]:
        steps = [*state["steps"], step_name(len(state["steps"]))]
        return {"steps": steps, "text": text(state["length"] + len(steps))}

    def onward(state: Chain) -> str:
        return END if len(state["steps"]) >= scale.run_steps else "work"

    async with open_async_saver(folder) as saver:
        await saver.setup()
        graph = StateGraph(Chain)
        graph.add_node("work", work)
        graph.add_edge(START, "work")
        graph.add_conditional_edges("work", onward, ["work", END])
        compiled = graph.compile(checkpointer=saver)

        async def run(number: int) -> None:
            given = {"steps": [], "length": number * scale.run_steps}
            await compiled.ainvoke(given, _config(f"run-{number}"), durability="sync")

        began = perf_counter()
        await asyncio.gather(*(run(n) for n in range(scale.runs)))
        took = perf_counter() - began
    return {"runs_per_s": scale.runs / took, "rss_mb": figures.rss_mb()}


def _chain_input(length: int, artifact: int) -> dict[str, Any]:
    return {"artifact": text(0, artifact), "steps": [], "length": length}


def _config(thread: str, steps: int = 10) -> Any:
    return {"configurable": {"thread_id": thread}, "recursion_limit": steps + 10}


IMPORTS = """
from langgraph.graph import StateGraph
from langgraph.checkpoint.sqlite import SqliteSaver
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
