"""Programs as agents inside a run: what the journal keeps, and what a cancelled run leaves."""

import asyncio
import os
import signal
import sys
import textwrap
from pathlib import Path
from typing import Any

from signoff.app.settings.agents import build_agents
from signoff.app.settings.settings import AgentSettings
from signoff.core.context import StepContext
from signoff.core.outcome import Outcome, Status
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.runtime.owner import birth_of
from signoff.store.sqlite import SqliteStore
from tests.patience import PATIENCE_SECONDS
from tests.unit.agents.programs import program

FAMILY = """
import pathlib
if os.fork() == 0:
    os.setsid()
pathlib.Path(FOLDER, str(os.getpid())).touch()
time.sleep(600)
"""


async def one_question(ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
    reply = await ctx.ask("claude", "Say something.")
    return Outcome.OK, {"reply": reply.text}


ASK = Workflow("ask", StepDef("ask", handler=one_question, next={Outcome.OK: None}))


def engine(folder: Path, body: str) -> Engine:
    settings = AgentSettings("claude", options={"path": program(folder / "bin", "claude", body)})
    store = SqliteStore(folder / "signoff.db")
    return Engine(store, agents=build_agents({"claude": settings}))


async def test_a_cancelled_run_leaves_no_process_of_its_agent(tmp_path: Path) -> None:
    """`cancel` must not return while the agent still edits files."""
    (tmp_path / "pids").mkdir()
    body = FAMILY.replace("FOLDER", repr(str(tmp_path / "pids")))

    async with engine(tmp_path, body) as driving:
        running = asyncio.create_task(driving.start(ASK, name="run"))
        pids = await two_processes(tmp_path / "pids")
        status = await driving.cancel("run", "enough")
        await asyncio.wait({running})

    assert status is Status.CANCELLED
    assert [birth_of(pid) for pid in pids] == [None, None]


async def test_a_resumed_run_ends_what_its_dead_runner_left_behind(tmp_path: Path) -> None:
    """Two agents would otherwise work on the same files, and both be paid."""
    (tmp_path / "pids").mkdir()
    body = FAMILY.replace("FOLDER", repr(str(tmp_path / "pids")))
    driver = textwrap.dedent(
        f"""
        import asyncio
        from pathlib import Path
        from tests.contract.test_programs_in_runs import ASK, engine
        async def main():
            async with engine(Path({str(tmp_path)!r}), {body!r}) as driving:
                await driving.start(ASK, name="run")
        asyncio.run(main())
        """
    )
    runner = await asyncio.create_subprocess_exec(sys.executable, "-c", driver)
    pids = await two_processes(tmp_path / "pids")

    os.kill(runner.pid, signal.SIGKILL)
    await runner.wait()
    alive = [birth_of(pid) is not None for pid in pids]
    async with engine(tmp_path, "say(type='result', result='Again.')") as driving:
        result = await driving.resume("run", ASK)

    assert alive == [True, True]
    assert result.state["reply"] == "Again."
    assert [birth_of(pid) for pid in pids] == [None, None]


async def two_processes(folder: Path) -> list[int]:
    """Waits until the program and its daemon run, and returns their numbers."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(found := os.listdir(folder)) < 2:  # noqa: PTH208, ASYNC110  # two files, no event
            await asyncio.sleep(0.02)
    return [int(name) for name in found]
