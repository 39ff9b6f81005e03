"""One `ctx.ask` passes through few files, so that a reader can follow it from end to end."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.store.sqlite import MemoryStore
from signoff.testing import FrozenClock, ScriptedAgent
from tests.architecture.tree import PACKAGE

MOST_FILES = 14
"""Outside `core`."""

ROLES = {
    "runtime/attempt_effects.py",
    "runtime/effect_runner.py",
    "runtime/journal.py",
    "runtime/performers.py",
    "store/sqlite.py",
    "agents/scripted.py",
}
"""The parts of the path that the architecture page names."""


async def test_one_ask_passes_through_few_files_outside_core() -> None:
    """A path through thirty files is one that no one dares to change."""
    files: set[str] = set()
    workflow = Workflow("one", StepDef("ask", handler=traced(files), next={Outcome.OK: None}))

    # With a frozen clock no commit is slow, so none is handed to a thread.
    agents = {"claude": ScriptedAgent(["hello"])}
    async with Engine(MemoryStore(), agents=agents, clock=FrozenClock()) as engine:
        result = await engine.start(workflow)

    assert result.state == {"text": "hello"}
    outside_core = {file for file in files if not file.startswith("core/")}
    assert outside_core >= ROLES
    assert len(outside_core) <= MOST_FILES, sorted(outside_core)


def traced(files: set[str]) -> Callable[[StepContext], Any]:
    """Returns a handler that asks once and adds the files whose code runs meanwhile."""

    async def handler(ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
        # Resuming a coroutine also enters the frames that await it, all the way from the engine
        # down to this handler. They only pass the reply on, so they are not part of the path.
        callers = set(frames_above(sys._getframe()))

        def note(frame: FrameType, event: str, _argument: object) -> None:
            path = Path(frame.f_code.co_filename)
            if event == "call" and frame not in callers and path.is_relative_to(PACKAGE):
                files.add(path.relative_to(PACKAGE).as_posix())

        before = sys.getprofile()
        sys.setprofile(note)
        try:
            reply = await ctx.ask("claude", "Hello?")
        finally:
            sys.setprofile(before)
        return Outcome.OK, {"text": reply.text}

    return handler


def frames_above(frame: FrameType | None) -> list[FrameType]:
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames
