import sys
from pathlib import Path
from typing import Any

import pytest

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.requests import Question
from signoff.runtime.folders import seen_from
from tests.unit.runtime.engine_fixture import EngineFixture, one_step

Work = tuple[Outcome, dict[str, Any]]
WHERE = [sys.executable, "-c", "import os; print(os.getcwd(), end='')"]


async def looks_around(ctx: StepContext) -> Work:
    await ctx.wait(Question("Go on?"))
    here = await ctx.command(WHERE, key="here")
    below = await ctx.command(WHERE, cwd="sub", key="below")
    reply = await ctx.ask("claude", "Write.", workspace="sub")
    return Outcome.OK, {"seen": [here.stdout, below.stdout], "said": reply.text}


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder runs are started in."""
    (tmp_path / "started" / "sub").mkdir(parents=True)
    (tmp_path / "elsewhere" / "sub").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "started")
    return tmp_path / "started"


async def test_programs_run_where_their_run_was_started(
    started: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`resume --due` from cron would else run half of the commands somewhere else."""
    bench = EngineFixture()
    bench.agent.on("Write", lambda request: str(request.workspace))
    flow = one_step(looks_around)
    await bench.start(flow)
    bench.answer("yes")
    monkeypatch.chdir(started.parent / "elsewhere")

    result = await bench.resume(flow)

    assert result.state["seen"] == [str(started), str(started / "sub")]
    assert result.state["said"] == str(started / "sub")
    await bench.close()


async def test_a_project_that_was_moved_runs_its_programs_where_it_is_resumed(
    started: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can bring the old folder back just to end a run."""
    bench = EngineFixture()
    bench.agent.on("Write", "text")
    flow = one_step(looks_around)
    await bench.start(flow)
    bench.answer("yes")
    moved = started.rename(started.with_name("moved"))  # noqa: ASYNC240  # nothing else runs
    monkeypatch.chdir(moved)

    result = await bench.resume(flow)

    assert result.state["seen"] == [str(moved), str(moved / "sub")]
    await bench.close()


def test_a_whole_path_stays_as_it_is(tmp_path: Path) -> None:
    """It means the same from everywhere."""
    assert seen_from(str(tmp_path), "/etc") == "/etc"
    assert seen_from("", None) is None
