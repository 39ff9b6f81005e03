"""What the scripts of constraints get, and what happens to their output."""

from pathlib import Path

import pytest

from signoff.core.outcome import Status
from signoff.testing import ScriptedAgent
from tests.unit.review.flow.harness import constraint, flow, passes, play, step

STEPS = (step("generate"), step("critique"), step("adjudicate", agent="policy"))


@pytest.mark.parametrize("script", ['cat "{{artifact}}"', "cat {{ artifact }}"])
async def test_a_script_reads_the_artifact_as_a_file_wherever_the_project_is(
    tmp_path: Path, script: str
) -> None:
    """In a folder with a blank in its name, a quoted path was wrong, and the file was missing."""
    root = tmp_path / "my project"
    root.mkdir()
    claude = ScriptedAgent(["The sea."]).on("against clear now", passes())
    played = flow(STEPS, [constraint("clear", script=script)], root=root, allow_scripts=True)

    result = await play(played, {"claude": claude}, root / ".signoff/runs")

    assert result.status is Status.COMPLETED, result.reason
    assert "exit code 0\nThe sea.\n" in claude.prompts[1]


@pytest.mark.parametrize(
    ("script", "why"), [("cat '", "No closing quotation"), ("cat {{nothing}}", "unknown variable")]
)
async def test_an_invalid_script_is_reported_and_does_not_stop_the_run(
    tmp_path: Path, script: str, why: str
) -> None:
    """A typo in the script of one constraint crashed the whole run."""
    claude = ScriptedAgent(["The sea."]).on("against clear now", passes())
    played = flow(STEPS, [constraint("clear", script=script)], root=tmp_path, allow_scripts=True)

    result = await play(played, {"claude": claude}, tmp_path / ".signoff/runs")

    assert result.status is Status.COMPLETED, result.reason
    assert "(not run: " in claude.prompts[1]
    assert why in claude.prompts[1]
