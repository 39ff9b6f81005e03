"""One of many processes that drive short runs on one database at the same time."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from signoff.core.context import StepContext
from signoff.core.delta import Append
from signoff.core.effects import AgentRequest
from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.store.sqlite import SqliteStore
from signoff.testing import EffectLog, ScriptedAgent

RUNS = 3
Work = tuple[Outcome, dict[str, Any]]


async def ask(ctx: StepContext) -> Work:
    reply = await ctx.ask("claude", f"{ctx.run} {ctx.step_id}")
    return Outcome.OK, {"said": Append([reply.text])}


async def spread(ctx: StepContext) -> Work:
    return Outcome.OK, {"items": await ctx.map(range(5), _item)}


async def _item(ctx: StepContext, number: int) -> str:
    return (await ctx.ask("claude", f"{ctx.run} item {number}")).text


WORKFLOW = Workflow(
    "crowd",
    StepDef("one", handler=ask, next={Outcome.OK: "two"}),
    StepDef("two", handler=spread, next={Outcome.OK: "three"}),
    StepDef("three", handler=ask, next={Outcome.OK: None}),
)


def expected(run: str) -> dict[str, Any]:
    """Returns how a run ends."""
    items = [f"re {run} item {number}" for number in range(5)]
    return {"said": [f"re {run} one", f"re {run} three"], "items": items}


async def main(path: Path, number: int) -> None:
    """Drives a few runs side by side."""
    agent = EffectLog(path.parent).watch(ScriptedAgent().on("", _echo))
    async with Engine(SqliteStore(path), agents={"claude": agent}) as engine:
        names = [f"run-{number}-{n}" for n in range(RUNS)]
        results = await asyncio.gather(*(engine.start(WORKFLOW, name=n) for n in names))
    for result in results:
        assert result.ok, result
        assert result.state == expected(result.run), result


def _echo(request: AgentRequest) -> str:
    return f"re {request.prompt}"


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
