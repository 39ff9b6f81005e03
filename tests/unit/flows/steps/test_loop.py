"""A whole loop, from the draft to the approval."""

from pathlib import Path

from signoff.core.outcome import Status
from signoff.testing import ScriptedAgent
from tests.unit.flows.harness import fails, flow, issue, passes, play, rules


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
