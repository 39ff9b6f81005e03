"""A sign-off that no one answers: its default counts once its deadline has passed."""

from __future__ import annotations

from pathlib import Path

import pytest

from signoff.core.outcome import Status
from signoff.flows.compile import compile_flow
from signoff.runtime.engine import Engine
from signoff.store.memory import MemoryStore
from signoff.store.rundir.files import RunFiles
from signoff.testing import FrozenClock, ScriptedAgent
from tests.unit.flows.harness import REWRITE_LOOP, flow, passes, show_files, step


@pytest.mark.parametrize(
    ("default", "status"), [("approve", Status.COMPLETED), ("reject", Status.REJECTED)]
)
async def test_the_default_counts_once_the_deadline_has_passed(
    default: str, status: Status, tmp_path: Path
) -> None:
    """Before that, a run that is resumed still waits for a human."""
    ending = step("sign_off", deadline=60, default=default)
    workflow = compile_flow(flow([*REWRITE_LOOP, ending]), "sea")
    clock, store = FrozenClock(), MemoryStore()
    agents = {"claude": ScriptedAgent(["The sea.", passes()])}
    async with Engine(store, agents=agents, files=RunFiles(tmp_path), clock=clock) as engine:
        waiting = await engine.start(workflow, name="run")
        clock.advance(59)
        early = await engine.resume("run", workflow)
        clock.advance(1)
        result = await engine.resume("run", workflow)
    show_files(store, tmp_path)

    assert (waiting.status, early.status) == (Status.WAITING, Status.WAITING)
    assert result.status is status, result.reason
    assert result.state["step"]["decision"] == default
    # Only a result without approval has to be explained.
    assert (tmp_path / "run/final/status.md").exists() is (default == "reject")
