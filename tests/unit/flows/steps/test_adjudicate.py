"""The judge is checked, and the loop ends."""

import json
from pathlib import Path
from typing import Any

import pytest

from signoff.core.outcome import Status
from signoff.core.severity import Severity
from signoff.flows.model import AdjudicationConfig, ConvergenceConfig
from signoff.store.sqlite import MemoryStore
from signoff.testing import ScriptedAgent
from tests.unit.flows.harness import (
    answer_and_resume,
    changed,
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


def by_policy() -> list[Any]:
    """Returns the same loop with the rule-based judge."""
    return [changed(s, agent="policy") if s.id == "judge" else s for s in LOOP]


def never_pleased(finding: str = "bad") -> ScriptedAgent:
    """Returns an agent that reports the same finding for every version."""
    claude = ScriptedAgent()
    claude.on("You review an artifact", fails(issue(finding)))
    claude.on("Write the artifact", *(f"Version {n}." for n in range(1, 30)))
    return claude


@pytest.mark.parametrize("severity", list(Severity))
@pytest.mark.parametrize(
    "block_on",
    [(), (Severity.CRITICAL,), (Severity.CRITICAL, Severity.HIGH), tuple(Severity)],
    ids=len,
)
async def test_the_policy_judge_blocks_on_the_configured_severities(
    severity: Severity, block_on: tuple[Severity, ...], tmp_path: Path
) -> None:
    """No model is asked, and every combination holds."""
    from signoff.core.severity import IssueBehavior
    from signoff.review.constraint import ConstraintBehavior

    the_flow = flow(
        by_policy(),
        max_iterations=1,
        adjudication=AdjudicationConfig(block_on=block_on),
        default_behavior=ConstraintBehavior(dict.fromkeys(Severity, IssueBehavior.CONTINUE)),
    )
    claude = ScriptedAgent(["Text.", fails(issue("bad", severity.value)), "Text!"])

    result = await play(the_flow, {"claude": claude}, tmp_path)

    assert result.status is (Status.LIMIT if severity in block_on else Status.COMPLETED)


@pytest.mark.parametrize(
    ("rule", "config", "rounds"),
    [
        ("plateau", ConvergenceConfig(plateau=2), 3),
        ("thrashing", ConvergenceConfig(thrashing=2), 2),
    ],
)
async def test_a_loop_that_does_not_converge_ends_with_the_rule_that_stopped_it(
    rule: str, config: ConvergenceConfig, rounds: int, tmp_path: Path
) -> None:
    """Rounds that change nothing only cost money."""
    the_flow = flow(by_policy(), max_iterations=20, convergence=config)

    result = await play(the_flow, {"claude": never_pleased()}, tmp_path)

    assert result.status is Status.NOT_CONVERGING
    assert rule in result.reason
    assert result.iteration == rounds
    assert (tmp_path / "run/final/artifact.md").read_text().startswith("Version")
    assert rule in (tmp_path / "run/final/status.md").read_text()


@pytest.mark.parametrize(
    ("answer", "status"), [("stop", Status.NOT_CONVERGING), ("continue", Status.WAITING)]
)
async def test_a_human_may_decide_whether_to_continue(
    answer: str, status: Status, tmp_path: Path
) -> None:
    """Escalating is configured; continuing starts the count again.

    The human sees the findings, not only their ids.
    """
    the_flow = flow(
        by_policy(),
        max_iterations=20,
        convergence=ConvergenceConfig(thrashing=2, action="escalate"),
    )
    store, claude = MemoryStore(), never_pleased()
    first = await play(the_flow, {"claude": claude}, tmp_path, store=store)

    result = await answer_and_resume(the_flow, {"claude": claude}, tmp_path, store, answer)

    assert first.status is Status.WAITING
    assert first.inbox[0].prompt.startswith("The loop is not converging")
    assert "bad" in first.inbox[0].prompt
    assert result.status is status
    assert result.iteration == (first.iteration if answer == "stop" else 4)


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
