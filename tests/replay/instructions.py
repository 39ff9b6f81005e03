"""A workflow with instructions, as version 0.1.0 ran it: only dispatches gave them to an agent.

To record it, run `python -m tests.replay.instructions 0.1.0` with that version.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from signoff import Dispatch, Outcome, StepDef, Workflow
from signoff.errors import WriteFailed
from signoff.runtime.engine import Engine
from signoff.store.sqlite import SqliteStore
from signoff.testing import FrozenClock, ScriptedAgent
from tests.replay.record import Until, dump

RECORDED = Path(__file__).with_name("instructions")
NAME = "story"
KILLED_AFTER = (2, 3)
"""Commits: the sub-agent was asked and has not answered; it has answered."""

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
    with suppress(WriteFailed):
        clock = FrozenClock(1_700_000_000.0)
        async with Engine(Until(inner, commits), agents=agents, clock=clock) as engine:
            with suppress(WriteFailed):
                await engine.start(STORY, name=NAME)
    inner.close()


def main() -> None:
    """Writes the recordings that do not exist yet."""
    for commits in KILLED_AFTER:
        target = RECORDED / f"{sys.argv[1]}-killed-{commits}.sql"
        if not target.exists():
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "signoff.db"
                asyncio.run(record(path, commits))
                target.write_text(dump(path))


if __name__ == "__main__":
    main()
