"""Many processes that drive short runs on one database at the same time.

`python -m tests.crash.concurrent_runs FOLDER DATABASE` forks them and waits for all of them.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from pathlib import Path
from typing import Any

import psycopg  # noqa: F401  # once for all processes, as the store below

from signoff.core.context import StepContext
from signoff.core.delta import Append
from signoff.core.effects import AgentRequest
from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.store.postgres import store as _store  # noqa: F401  # once for all processes
from signoff.testing import EffectLog, ScriptedAgent
from signoff.testing.crash_child import run_and_exit
from tests.run_stores import open_address

PROCESSES = 50
RUNS_PER_PROCESS = 3
StepResult = tuple[Outcome, dict[str, Any]]


async def ask(ctx: StepContext) -> StepResult:
    reply = await ctx.ask("claude", f"{ctx.run} {ctx.step_id}")
    return Outcome.OK, {"replies": Append([reply.text])}


async def fan_out(ctx: StepContext) -> StepResult:
    return Outcome.OK, {"items": await ctx.map(range(5), _item)}


async def _item(ctx: StepContext, number: int) -> str:
    return (await ctx.ask("claude", f"{ctx.run} item {number}")).text


WORKFLOW = Workflow(
    "concurrent",
    StepDef("one", handler=ask, next={Outcome.OK: "two"}),
    StepDef("two", handler=fan_out, next={Outcome.OK: "three"}),
    StepDef("three", handler=ask, next={Outcome.OK: None}),
)


def expected(run: str) -> dict[str, Any]:
    """Returns the final state of a run."""
    items = [f"re {run} item {number}" for number in range(5)]
    return {"replies": [f"re {run} one", f"re {run} three"], "items": items}


async def drive(folder: Path, address: str, number: int) -> None:
    """Drives a few runs concurrently."""
    agent = EffectLog(folder).watch(ScriptedAgent().on("", _echo))
    async with Engine(open_address(address), agents={"claude": agent}) as engine:
        names = [f"run-{number}-{n}" for n in range(RUNS_PER_PROCESS)]
        results = await asyncio.gather(*(engine.start(WORKFLOW, name=n) for n in names))
    for result in results:
        assert result.ok, result
        assert result.state == expected(result.run), result


def main(folder: Path, address: str) -> None:
    """Forks the processes; exits with an error if one of them fails."""
    gc.freeze()
    children = []
    for number in range(PROCESSES):
        child = os.fork()
        if not child:
            run_and_exit(lambda: asyncio.run(drive(folder, address, number)))  # noqa: B023
        children.append(child)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    if any(statuses):
        sys.exit("not every process succeeded")


def _echo(request: AgentRequest) -> str:
    return f"re {request.prompt}"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
