"""A run that goes through several processes, one command each."""

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
from signoff.store.sqlite import SqliteStore
from signoff.testing import EffectLog, ScriptedAgent

Work = tuple[Outcome, dict[str, Any]]


async def work(ctx: StepContext) -> Work:
    draft = await ctx.ask("claude", "Write.", key="draft")
    answer = await ctx.wait(Question(f"Is {draft.text!r} good?"))
    final = await ctx.ask("claude", f"Polish: {answer.value}", key="final")
    return Outcome.OK, {"draft": draft.text, "said": answer.value, "final": final.text}


async def hang(ctx: StepContext) -> Work:
    # In short turns: a signal that comes just before the loop waits is handled when it wakes.
    for _ in range(6000):
        await asyncio.sleep(0.1)
    return Outcome.OK, {}


WORKFLOW = Workflow("relay", StepDef("work", handler=work, next={Outcome.OK: None}))
HANGING = Workflow("hanging", StepDef("work", handler=hang, next={Outcome.OK: None}))


async def main(command: str, path: Path) -> None:
    """Does one thing and prints how the run stands."""
    store = SqliteStore(path)
    agent = ScriptedAgent().on("Write.", "a draft").on("Polish", "a polished draft")
    async with Engine(store, agents={"claude": EffectLog(path.parent).watch(agent)}) as engine:
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
                print(await engine.cancel("run", "from elsewhere"))
                return
            case _:
                (item,) = store.items("run")
                given = json.dumps({"value": command, "text": ""})
                store.answer(item.id, given, f"process {os.getpid()}", 0.0, item.digest)
                return
    print(json.dumps({"status": result.status.value, "state": result.state}))


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
    except SignoffError as error:
        sys.exit(f"{type(error).__name__}: {error}")
