"""Stories that break the promises the crash harness looks for."""

from __future__ import annotations

from typing import Any

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.errors import UnknownName
from signoff.runtime.engine import Engine
from signoff.runtime.store_port import Store
from signoff.testing import EffectLog, ScriptedAgent

Work = tuple[Outcome, dict[str, Any]]


async def ask(ctx: StepContext) -> Work:
    reply = await ctx.ask("claude", "Write.")
    return Outcome.OK, {ctx.step_id: reply.text}


FLOW = Workflow(
    "flow",
    StepDef("one", handler=ask, next={Outcome.OK: "two"}),
    StepDef("two", handler=ask, next={Outcome.OK: None}),
)


async def repeats_itself(store: Store, log: EffectLog) -> None:
    """Performs its first effect in every process, whatever is recorded."""
    log.note("run/one/1/1/ask#1")
    async with Engine(store, agents={"claude": ScriptedAgent().on("", "text")}) as engine:
        try:
            store.row("run")
        except UnknownName:
            await engine.start(FLOW, name="run")
        else:
            await engine.resume("run", FLOW)


async def fails(_store: Store, _log: EffectLog) -> None:
    """Has a bug."""
    raise RuntimeError("a bug in the story")
