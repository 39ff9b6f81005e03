"""What a user is told about an approval."""

from pathlib import Path

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


async def test_an_approval_warns_about_a_constraint_that_was_never_read(tmp_path: Path) -> None:
    """The review halted before it, and the judge dismissed what it had halted for."""
    claude = agent()

    result = await play(flow(SERIAL, CONSTRAINTS), {"claude": claude}, tmp_path)

    assert result.status is Status.COMPLETED
    assert result.state["result_warnings"] == [
        "passed although no critic has read it against: short"
    ]


async def test_with_partial_readings_it_is_read_before_the_approval(tmp_path: Path) -> None:
    """There is nothing to warn about then."""
    claude = agent()

    result = await play(flow(SERIAL, CONSTRAINTS, rereview="changed"), {"claude": claude}, tmp_path)

    assert result.status is Status.COMPLETED
    assert claude.remaining == 0
    assert "result_warnings" not in result.state
