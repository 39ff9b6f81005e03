"""Stories that violate what the crash harness checks."""

from __future__ import annotations

import threading
from typing import Any

from signoff.core.context import StepContext
from signoff.core.errors import UnknownName
from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.runtime.store_port import Store
from signoff.testing import EffectLog, ScriptedAgent

StepResult = tuple[Outcome, dict[str, Any]]


async def ask(ctx: StepContext) -> StepResult:
    reply = await ctx.ask("claude", "Write.")
    return Outcome.OK, {ctx.step_id: reply.text}


WORKFLOW = Workflow(
    "flow",
    StepDef("one", handler=ask, next={Outcome.OK: "two"}),
    StepDef("two", handler=ask, next={Outcome.OK: None}),
)


async def repeats_its_first_effect(store: Store, log: EffectLog) -> None:
    """Performs its first effect in every process, even if its reply is stored."""
    log.note("run/one/1/1/ask#1")
    async with Engine(store, agents={"claude": ScriptedAgent().on("", "text")}) as engine:
        try:
            store.row("run")
        except UnknownName:
            await engine.start(WORKFLOW, name="run")
        else:
            await engine.resume("run", WORKFLOW)


async def has_a_bug(_store: Store, _log: EffectLog) -> None:
    raise RuntimeError("a bug in the story")


async def hangs(_store: Store, _log: EffectLog) -> None:
    # Blocks the whole process, event loop included.
    threading.Event().wait()
