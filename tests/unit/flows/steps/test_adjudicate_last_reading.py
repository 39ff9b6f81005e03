"""What a user is told about an approval."""

from pathlib import Path

import pytest

from signoff.core.outcome import Status
from signoff.testing import ScriptedAgent
from tests.unit.flows.harness import constraint, fails, flow, issue, passes, play, rules, step

SERIAL = [
    step("generate"),
    step("critique", "review", execution="serial"),
    step("adjudicate", "judge"),
    step("refine", "fix", mode="rewrite", loop_to="review"),
]
CONSTRAINTS = [constraint("clear"), constraint("short")]
DISMISSAL = {"issue_id": "clear-001", "status": "dismissed", "rationale": "It is a name."}


def agent() -> ScriptedAgent:
    """Returns an agent with a finding that halts the review, and dismisses it as the judge."""
    return (
        ScriptedAgent()
        .on("Write the artifact", "The see.")
        .on("against clear now", fails(issue("misspelled", evidence="The see")))
        .on("against short now", passes())
        .on("You are the judge", rules("APPROVED", DISMISSAL))
    )


@pytest.mark.parametrize("mode", ["all", "changed"])
async def test_a_constraint_that_was_skipped_is_read_before_the_approval(
    mode: str, tmp_path: Path
) -> None:
    """The review halted before it, and the judge dismissed what it had halted for."""
    claude = agent()

    result = await play(flow(SERIAL, CONSTRAINTS, rereview=mode), {"claude": claude}, tmp_path)

    assert result.status is Status.COMPLETED
    assert any("against short now" in prompt for prompt in claude.prompts)
    assert "result_warnings" not in result.state
