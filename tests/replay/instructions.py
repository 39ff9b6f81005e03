"""A workflow with instructions, stopped while its sub-agent works."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path

from signoff import Dispatch, Outcome, StepDef, Workflow
from signoff.core.errors import WriteFailed
from signoff.runtime.engine import Engine
from signoff.store.sqlite import SqliteStore
from signoff.testing import FrozenClock, ScriptedAgent
from tests.replay.recordings import Until

NAME = "story"

STORY = Workflow(
    "instructions",
    StepDef(
        "review",
        "Review it",
        ["Read it.", "Judge it."],
        Dispatch("claude", script="tools.review", context_vars={"depth": 3}),
        {Outcome.OK: "write", Outcome.FAIL: None},
    ),
    StepDef("write", "Write it down", ["Say what you found."], next={Outcome.OK: None}),
)


async def record(path: Path, commits: int) -> None:
    """Runs the story in a new database, up to a commit."""
    inner = SqliteStore(path)
    agents = {"claude": ScriptedAgent([{"status": "pass", "notes": "then"}])}
    roles = {"worker": "claude"}
    with suppress(WriteFailed):
        clock, store = FrozenClock(1_700_000_000.0), Until(inner, commits)
        async with Engine(store, agents=agents, default_roles=roles, clock=clock) as engine:
            with suppress(WriteFailed):
                await engine.start(STORY, name=NAME)
    inner.close()


RECORDINGS = {
    # The sub-agent was asked and has not answered; it has answered.
    "instructions-asked": partial(record, commits=2),
    "instructions-answered": partial(record, commits=3),
}
