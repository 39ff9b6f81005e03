"""The judge is checked, and the loop ends."""

import json
from pathlib import Path

import pytest

from signoff.core.outcome import Status
from signoff.testing import ScriptedAgent
from tests.unit.flows.harness import (
    fails,
    flow,
    issue,
    passes,
    play,
    rules,
    step,
)

LOOP = [
    step("generate"),
    step("critique", "review"),
    step("adjudicate", "judge"),
    step("refine", mode="rewrite", loop_to="review"),
]


async def test_the_approval_of_an_earlier_judge_skips_its_refine_step(tmp_path: Path) -> None:
    """Approving the structure is not approving the style."""
    the_flow = flow(
        [
            step("generate"),
            step("critique", "one"),
            step("adjudicate", "first", agent="policy"),
            step("refine", "fix", mode="rewrite"),
            step("critique", "two"),
            step("adjudicate", "last", agent="policy"),
        ]
    )
    claude = ScriptedAgent(["Text.", passes()])

    result = await play(the_flow, {"claude": claude}, tmp_path)

    assert result.status is Status.COMPLETED
    assert claude.remaining == 0, "the second reading of the same text is not paid for"


@pytest.mark.parametrize(("confirmed", "status"), [(True, Status.LIMIT), (False, Status.COMPLETED)])
async def test_the_dismissal_of_a_critical_finding_is_checked(
    tmp_path: Path, confirmed: bool, status: Status
) -> None:
    """A wrong dismissal of such a finding ships the defect: nobody reports it again."""
    verdict = rules("APPROVED", {"issue_id": "clear-001", "status": "dismissed", "rationale": "no"})
    again = json.dumps({"reason": "I looked again.", "confirmed": confirmed})
    claude = ScriptedAgent(["Text.", fails(issue("bad", "CRITICAL")), verdict, again, "Text!"])

    result = await play(flow(LOOP, max_iterations=1), {"claude": claude}, tmp_path)

    assert result.status is status
    assert "Is the claim true?" in claude.prompts[3]
    notes = " ".join(result.state["last_adjudication"].get("notes", ()))
    assert ("dismissed by the judge, but it is confirmed by claude" in notes) is confirmed
