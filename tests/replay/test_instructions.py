"""Resumes runs with instructions that an earlier version left in the middle."""

from contextlib import closing
from pathlib import Path

import pytest

from signoff.core.outcome import Status
from signoff.runtime.engine import Engine
from signoff.testing import ScriptedAgent
from tests.replay.instructions import NAME, RECORDED, STORY
from tests.replay.record import restore
from tests.run_stores import moved_here, open_address


@pytest.mark.parametrize(
    ("recording", "notes", "asked"),
    [
        ("killed-2", "now", ["# Review it", "# Write it down"]),
        ("killed-3", "then", ["# Write it down"]),
    ],
)
async def test_a_run_goes_on_and_its_remaining_instructions_are_handed_out(
    tmp_path: Path, recording: str, notes: str, asked: list[str]
) -> None:
    """The definition is still the same, and no recorded verdict is asked for again."""
    restore(RECORDED / f"0.1.0-{recording}.sql", tmp_path / "signoff.db")
    agent = ScriptedAgent().on("# Review it", {"status": "pass", "notes": "now"})
    agent.on("# Write it down", "All is well.")
    roles = {"worker": "claude"}

    with closing(open_address(moved_here(tmp_path / "signoff.db"))) as store:
        async with Engine(store, agents={"claude": agent}, default_roles=roles) as engine:
            result = await engine.resume(NAME, STORY)

    assert result.status is Status.COMPLETED
    assert result.state == {"review": {"status": "pass", "notes": notes}, "write": "All is well."}
    assert [prompt.splitlines()[0] for prompt in agent.prompts] == asked
