"""Performs one operation of the engine, in a process of its own.

`python -m tests.crash.engine_command hang|cancel DATABASE`
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from signoff.core.context import StepContext
from signoff.core.errors import SignoffError
from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from tests.run_stores import open_address

StepResult = tuple[Outcome, dict[str, Any]]


async def hang(ctx: StepContext) -> StepResult:
    # Python handles a signal when the loop wakes up, so the loop has to wake up often.
    for _ in range(6000):
        await asyncio.sleep(0.1)
    return Outcome.OK, {}


HANGING = Workflow("hanging", StepDef("work", handler=hang, next={Outcome.OK: None}))


async def main(command: str, address: str) -> None:
    """Starts a run that hangs, or cancels it."""
    async with Engine(open_address(address)) as engine:
        if command == "hang":
            await engine.start(HANGING, name="run")
        else:
            print(await engine.cancel("run", "by another"))


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1], sys.argv[2]))
    except SignoffError as error:
        sys.exit(f"{type(error).__name__}: {error}")
