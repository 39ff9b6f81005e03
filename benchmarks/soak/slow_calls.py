"""The workflow of the soak: calls that take a while, and log durably when they start and end.

A project's folder gets a copy of this file.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from signoff import Outcome, StepDef, Workflow
from signoff.core.context import StepContext
from signoff.core.effects import AgentRequest, Reply
from signoff.runtime.ports import Call

LOG = Path(__file__).parent / "calls.log"
VARIABLE = "SOAK_CALL_SECONDS"
LONGEST_SECONDS = float(os.environ.get(VARIABLE, "1.5"))
"""How long a call takes at most."""
CRITICS = 3

StepResult = tuple[Outcome, dict[str, Any]]


class SlowAgent:
    """Answers after a while. It waits instead of computing: many fit on one machine."""

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Returns an echo of the prompt."""
        _log("start", call)
        await asyncio.sleep(random.uniform(0.1, 1.0) * LONGEST_SECONDS)
        _log("end", call)
        return Reply(f"re {request.prompt}")


def _log(what: str, call: Call) -> None:
    # One write that the operating system has taken survives the death of this process.
    line = f"{time.time()!r} {what} {call.run} {call.effect} {call.attempt} {os.getpid()}\n"
    with LOG.open("ab", buffering=0) as file:
        file.write(line.encode())


async def draft(ctx: StepContext) -> StepResult:
    """Makes one call, and continues a moment later."""
    reply = await ctx.ask("slow", f"{ctx.run} draft", key="draft")
    await ctx.park(timedelta(milliseconds=200))
    return Outcome.OK, {"draft": reply.text}


async def review(ctx: StepContext) -> StepResult:
    """Makes several calls at once."""
    return Outcome.OK, {"reviews": await ctx.map(range(CRITICS), _critic, key="critics")}


async def _critic(ctx: StepContext, number: int) -> str:
    return (await ctx.ask("slow", f"{ctx.run} critic {number}", key="critic")).text


async def revise(ctx: StepContext) -> StepResult:
    """Makes two calls, one after the other."""
    first = await ctx.ask("slow", f"{ctx.run} revise", key="revise")
    second = await ctx.ask("slow", f"{ctx.run} polish", key="polish")
    return Outcome.OK, {"final": [first.text, second.text]}


def expected(run: str) -> dict[str, str | Sequence[str]]:
    """Returns the state that a run must end with."""
    return {
        "draft": f"re {run} draft",
        "reviews": [f"re {run} critic {number}" for number in range(CRITICS)],
        "final": [f"re {run} revise", f"re {run} polish"],
    }


CALLS_PER_RUN = CRITICS + 3

SOAK = Workflow(
    "soak",
    StepDef("draft", handler=draft, next={Outcome.OK: "review"}),
    StepDef("review", handler=review, next={Outcome.OK: "revise"}),
    StepDef("revise", handler=revise, next={Outcome.OK: None}),
    agents={"slow": SlowAgent()},
)
