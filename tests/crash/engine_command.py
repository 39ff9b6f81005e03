"""Performs one operation of the engine, in a process of its own.

`python -m tests.crash.engine_command start|resume|hang|join|cancel|ANSWER FOLDER DATABASE`
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.requests import Question
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.errors import SignoffError
from signoff.runtime.engine import Engine
from signoff.testing import EffectLog, ScriptedAgent
from tests.run_stores import open_address

StepResult = tuple[Outcome, dict[str, Any]]


async def work(ctx: StepContext) -> StepResult:
    draft = await ctx.ask("claude", "Write.", key="draft")
    answer = await ctx.wait(Question(f"Is {draft.text!r} good?"))
    final = await ctx.ask("claude", f"Polish: {answer.value}", key="final")
    return Outcome.OK, {"draft": draft.text, "answer": answer.value, "final": final.text}


async def hang(ctx: StepContext) -> StepResult:
    # Python handles a signal when the loop wakes up, so the loop has to wake up often.
    for _ in range(6000):
        await asyncio.sleep(0.1)
    return Outcome.OK, {}


WORKFLOW = Workflow("work", StepDef("work", handler=work, next={Outcome.OK: None}))
HANGING = Workflow("hanging", StepDef("work", handler=hang, next={Outcome.OK: None}))


async def main(command: str, folder: Path, address: str) -> None:
    """Performs the operation, and prints the status and state of the run."""
    store = open_address(address)
    agent = ScriptedAgent().on("Write.", "a draft").on("Polish", "a polished draft")
    async with Engine(store, agents={"claude": EffectLog(folder).watch(agent)}) as engine:
        match command:
            case "start":
                result = await engine.start(WORKFLOW, name="run")
            case "resume":
                result = await engine.resume("run", WORKFLOW)
            case "hang":
                result = await engine.start(HANGING, name="run")
            case "join":
                result = await engine.resume("run", HANGING)
            case "cancel":
                print(await engine.cancel("run", "by another"))
                return
            case _:
                (item,) = store.items("run")
                answer = json.dumps({"value": command, "text": ""})
                store.answer(item.id, answer, f"process {os.getpid()}", 0.0, item.digest)
                return
    print(json.dumps({"status": result.status.value, "state": result.state}))


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
    except SignoffError as error:
        sys.exit(f"{type(error).__name__}: {error}")
