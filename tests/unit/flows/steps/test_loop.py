"""A whole loop, from the draft to the approval."""

from pathlib import Path

from signoff.core.outcome import Status
from signoff.review.behaviors import ConstraintBehavior, IssueBehavior
from signoff.review.severity import Severity
from signoff.testing import ScriptedAgent
from tests.unit.flows.harness import fails, flow, issue, passes, play, rules, step


async def test_a_loop_goes_round_until_the_judge_approves(tmp_path: Path) -> None:
    """The whole point: what is wrong is found, mended, read again, and only then approved."""
    claude = ScriptedAgent(
        [
            "The see.",
            fails(issue("misspelt", evidence="see")),
            rules("REWRITE", {"issue_id": "clear-001", "status": "pursuing"}, bill="Mend it."),
            "The sea.",
            "The sea!",
            passes(),
            rules("APPROVED"),
        ]
    )

    result = await play(flow(), {"claude": claude}, tmp_path)

    assert result.status is Status.COMPLETED, result.reason
    assert (tmp_path / "run/final/artifact.md").read_text() == "The sea!\n"
    assert claude.left == 0


async def test_a_flow_without_a_judge_ends_at_its_limit_with_the_best_version(
    tmp_path: Path,
) -> None:
    """Nothing approves, so nothing is called approved."""
    made = flow([step("generate"), step("critique")], max_iterations=2)
    claude = ScriptedAgent(["One.", passes(), "Two.", fails(issue("bad"))])

    result = await play(made, {"claude": claude}, tmp_path)

    assert result.status is Status.LIMIT
    assert (tmp_path / "run/final/artifact.md").read_text() == "One.\n"


async def test_the_state_says_where_the_run_stands(tmp_path: Path) -> None:
    """Who reads state.json while a run waits must find the step it waits in."""
    made = flow(default_behavior=ConstraintBehavior({Severity.HIGH: IssueBehavior.ESCALATE}))
    claude = ScriptedAgent(["Text.", fails(issue("bad"))])

    result = await play(made, {"claude": claude}, tmp_path)

    assert result.status is Status.WAITING
    assert result.state["step_index"] == 1
