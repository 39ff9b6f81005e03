"""A judge is not asked if it could only approve."""

from pathlib import Path
from typing import Any

import pytest

from signoff.agents.base import ManualAgent
from signoff.core.outcome import Status
from signoff.flows.model import AdjudicationConfig
from signoff.testing import ScriptedAgent
from tests.unit.flows.harness import constraint, fails, flow, issue, passes, play, rules, step

ROUND = [step("generate"), step("critique", "review"), step("adjudicate", "judge")]


@pytest.mark.parametrize("review", [passes(), fails(issue("a matter of taste", "LOW"))])
async def test_the_rules_pass_it_if_no_issue_reaches_the_judge(review: str, tmp_path: Path) -> None:
    """Whether critics found nothing, or nothing that has an effect."""
    claude = ScriptedAgent(["Text.", review])

    result = await play(flow(ROUND), {"claude": claude}, tmp_path)

    assert result.status is Status.COMPLETED, result.reason
    verdict = result.state["last_adjudication"]
    assert (verdict["status"], verdict["decisions"]) == ("APPROVED", [])
    assert any("passed by the rules" in note for note in verdict["notes"])
    assert "remarks" not in result.state, "this is no warning"


async def test_one_minor_issue_is_decided_by_the_judge(tmp_path: Path) -> None:
    """It may want it fixed, although it does not block."""
    review = fails(issue("long", "MEDIUM", "Text"))
    claude = ScriptedAgent(["Text.", review, rules("REWRITE", {"issue_id": "clear-001"})])

    result = await play(flow(ROUND, max_iterations=1), {"claude": claude}, tmp_path)

    assert result.status is Status.LIMIT
    assert claude.remaining == 0


async def test_a_judge_with_instructions_is_always_asked(tmp_path: Path) -> None:
    """They may ask for more than the critics look at."""
    played = flow(
        ROUND, max_iterations=1, adjudication=AdjudicationConfig(instructions="Check the title.")
    )
    claude = ScriptedAgent(["Text.", passes(), rules("REWRITE", bill="Add a title.")])

    result = await play(played, {"claude": claude}, tmp_path)

    assert result.status is Status.LIMIT
    assert claude.remaining == 0


async def test_a_human_judge_is_always_asked(tmp_path: Path) -> None:
    """Nothing is signed off on behalf of a human."""
    steps = [*ROUND[:2], step("adjudicate", "judge", agent="ann")]
    played = flow(steps, kinds={"ann": "manual"})
    agents: dict[str, Any] = {"claude": ScriptedAgent(["Text.", passes()]), "ann": ManualAgent()}

    result = await play(played, agents, tmp_path)

    assert result.status is Status.WAITING
    assert len(result.inbox) == 1


async def test_a_judge_without_any_critique_is_asked(tmp_path: Path) -> None:
    """Nothing was read, so nobody can say that there is nothing to decide."""
    steps = [ROUND[0], step("critique", "review", constraints=("none*",)), ROUND[2]]
    claude = ScriptedAgent(["Text.", rules("APPROVED")])

    result = await play(flow(steps, [constraint("clear")]), {"claude": claude}, tmp_path)

    assert claude.remaining == 0
    assert result.status is Status.COMPLETED
