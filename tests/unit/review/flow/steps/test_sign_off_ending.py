"""What a run writes to `final/`."""

from pathlib import Path

from signoff.core.outcome import Status
from signoff.testing import ScriptedAgent
from tests.unit.review.flow.harness import flow, passes, play, step


async def test_an_approval_that_does_not_end_the_run_still_saves_the_artifact(
    tmp_path: Path,
) -> None:
    """With `on_approved: continue` at the end, a run used up its rounds and saved nothing."""
    steps = (
        step("generate"),
        step("critique"),
        step("adjudicate", "judge", agent="policy", on_approved="continue"),
        step("refine", mode="rewrite", loop_to="critique"),
    )
    claude = ScriptedAgent(["The sea."]).on("against clear now", passes())

    result = await play(flow(steps, max_iterations=1), {"claude": claude}, tmp_path)

    assert result.status is Status.LIMIT
    assert result.reason == "1 round; a pass by 'judge' does not end the run"
    assert (tmp_path / "run/final/artifact.md").read_text() == "The sea.\n"
