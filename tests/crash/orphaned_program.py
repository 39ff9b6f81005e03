"""A runner that is killed right after it started a program, before it could record that.

`python -m tests.crash.orphaned_program command|agent FOLDER DATABASE` runs it. The program hangs
when it is started for the first time; the second time it prints whether the first one is still
alive.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from signoff.agents.headless import Job, run_program
from signoff.core.context import StepContext
from signoff.core.effects import AgentRequest, Reply
from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.runtime.ports import Call
from signoff.runtime.store_port import Commit, CommitResult
from signoff.testing import WrappedStore
from tests.run_stores import open_address

PROGRAM = """
import os, pathlib, sys, time
pid = pathlib.Path(sys.argv[1]) / "pid"
if not pid.exists():
    pid.with_name("draft").write_text(str(os.getpid()))
    pid.with_name("draft").rename(pid)
    time.sleep(600)
former = pathlib.Path(f"/proc/{pid.read_text()}/stat")
print("alive" if former.exists() and former.read_text().split()[2] not in "ZX" else "gone")
"""


class KilledBeforeRecording(WrappedStore):
    """Kills its process when it should store which program was started."""

    def commit(self, commits: Sequence[Commit], *, wait: bool = True) -> list[CommitResult]:
        if any("effect_running" in commit.events for commit in commits):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().commit(commits, wait=wait)


class ProgramAgent:
    """An agent whose replies are the output of the program."""

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        output = bytearray()
        job = Job(_argv(Path(request.prompt)), request.prompt, dict(os.environ), seconds=600.0)
        await run_program(job, call, output.extend, output.extend)
        return Reply(output.decode())


AGENT = ProgramAgent()


def workflow(kind: str, folder: Path) -> Workflow:
    """Returns a workflow that runs the program, as a command or as an agent."""

    async def work(ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
        if kind == "command":
            output = (await ctx.command(_argv(folder), on_crash="rerun")).stdout
        else:
            output = (await ctx.ask("program", str(folder))).text
        return Outcome.OK, {"alive": [] if "gone" in output else [output]}

    return Workflow("orphan", StepDef("work", handler=work, next={Outcome.OK: None}))


def _argv(folder: Path) -> list[str]:
    return [sys.executable, "-IS", "-c", PROGRAM, str(folder)]


async def _start(kind: str, folder: Path, address: str) -> None:
    store = KilledBeforeRecording(open_address(address))
    async with Engine(store, agents={"program": AGENT}) as engine:
        await engine.start(workflow(kind, folder), name="run")


if __name__ == "__main__":
    asyncio.run(_start(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
