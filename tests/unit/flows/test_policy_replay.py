"""Tests of another policy on recorded steps of a run."""

from dataclasses import replace
from typing import Any

import pytest

from signoff.core.severity import IssueBehavior, Severity
from signoff.flows.model import AdjudicationConfig, GenflowConfig, WorkflowStep
from signoff.flows.policy import RecordedVisit, Replay, recompute
from signoff.flows.state import NOTHING_REVIEWED, stored
from signoff.review.adjudication import Adjudication, AdjudicationDecision, Pursuit, Verdict
from signoff.review.constraint import Constraint, ConstraintBehavior, Level
from signoff.review.critique import Critique, CritiqueIssue, Overall
from tests.unit.flows.harness import step

STEPS = (step("generate", "draft"), step("critique", "review"), step("adjudicate", "judge"))
CONSTRAINTS = {"clear": Constraint("clear")}


def policy(*steps: WorkflowStep, **fields: Any) -> GenflowConfig:
    return GenflowConfig(workflow=steps or STEPS, **fields)


def behaves(**behaviors: str) -> ConstraintBehavior:
    return ConstraintBehavior.from_dict(behaviors)


def issue(severity: str, behavior: str, name: str = "clear-001") -> CritiqueIssue:
    issue_before = CritiqueIssue(name, "r", Severity(severity), "", "wrong", "OMISSION")
    return replace(issue_before, behavior=behavior, finding_id=f"f-{name}")


def reviewed(
    *issues: CritiqueIssue, iteration: int = 1, by: str = "review"
) -> tuple[RecordedVisit, dict[str, Any]]:
    """Returns a visit of a critique step, and the state after it."""
    overall = Overall.FAIL if issues else Overall.PASS
    critiques = [stored(Critique("clear", "claude", iteration, overall, issues), by)]
    after = {
        **NOTHING_REVIEWED,
        "critiques_by_step": {by: critiques},
        "unadjudicated_critiques": critiques,
        "last_critique_step": by,
        "step": {"kind": "critique", "step": by},
    }
    return RecordedVisit(by, iteration, {}, after), after


def judged(
    state: dict[str, Any],
    status: Verdict,
    *decisions: AdjudicationDecision,
    iteration: int = 1,
    by: str = "judge",
    stated: Verdict | None = None,
) -> RecordedVisit:
    """Returns a visit of a judge's step."""
    adjudication = Adjudication(iteration, status, decisions, stated=stated).to_json()
    after = {**state, "last_adjudication": adjudication, "step": {"kind": "adjudicate", "step": by}}
    return RecordedVisit(by, iteration, state, after)


def tried(*history: RecordedVisit, under: GenflowConfig | None = None) -> Replay:
    return recompute(history, under or policy(), CONSTRAINTS)


@pytest.mark.parametrize(
    ("stated", "now", "level"),
    [
        ({}, IssueBehavior.HALT, Level.BUILT_IN),
        (
            {"default_behavior": behaves(high="ignore")},
            IssueBehavior.IGNORE,
            Level.DEFAULT,
        ),
        (
            {
                "default_behavior": behaves(high="ignore"),
                "constraint_behaviors": {"cl*": behaves(high="escalate")},
            },
            IssueBehavior.ESCALATE,
            Level.FLOW,
        ),
    ],
    ids=["built-in", "default", "by constraint"],
)
def test_the_strongest_level_of_the_other_policy_decides_each_issue(
    stated: dict[str, Any], now: IssueBehavior, level: Level
) -> None:
    """The point of a replay: the behavior of every finding."""
    done, _ = reviewed(issue("HIGH", "halt"))

    (rerouted,) = tried(done, under=policy(**stated)).issues

    assert (rerouted.now, rerouted.level) == (now, level)
    assert rerouted.changed is (now is not IssueBehavior.HALT)


def test_an_approval_is_rejected_by_a_stricter_policy() -> None:
    """Users who tighten the policy want to know which approvals it affects."""
    first, state = reviewed(issue("MEDIUM", "continue"))
    judge = judged(state, Verdict.APPROVED, AdjudicationDecision("clear-001"))
    strict = policy(adjudication=AdjudicationConfig(block_on=tuple(Severity)))

    result = tried(first, judge, under=strict)

    (verdict,) = result.verdicts
    assert (verdict.was, verdict.now) == (Verdict.APPROVED, Verdict.REWRITE)
    assert verdict.blocking == ("f-clear-001",)
    assert result.parts_at == "round 1, step judge"


def test_an_overruled_approval_is_valid_under_a_milder_policy() -> None:
    """The judge's verdict was APPROVED; only the old policy blocked it."""
    first, state = reviewed(issue("HIGH", "continue"))
    judge = judged(
        state, Verdict.REWRITE, AdjudicationDecision("clear-001"), stated=Verdict.APPROVED
    )
    mild = policy(
        adjudication=AdjudicationConfig(block_on=(Severity.CRITICAL,)),
        default_behavior=behaves(high="continue"),
    )

    (verdict,) = tried(first, judge, under=mild).verdicts

    assert (verdict.was, verdict.now, verdict.changed) == (
        Verdict.REWRITE,
        Verdict.APPROVED,
        True,
    )


def test_a_judges_own_verdict_to_rewrite_stays() -> None:
    """A policy cannot approve what the judge wanted rewritten."""
    first, state = reviewed(issue("HIGH", "halt"))
    judge = judged(state, Verdict.REWRITE, AdjudicationDecision("clear-001"))

    (verdict,) = tried(first, judge, under=policy(default_behavior=behaves(high="ignore"))).verdicts

    assert (verdict.now, verdict.blocking) == (Verdict.REWRITE, ())


def test_what_the_judge_dismissed_does_not_block_under_another_policy() -> None:
    """The decisions were about the text; the policy is about severities."""
    first, state = reviewed(issue("MEDIUM", "continue"))
    dismissed = AdjudicationDecision("clear-001", status=Pursuit.DISMISSED)
    strict = policy(adjudication=AdjudicationConfig(block_on=tuple(Severity)))

    (verdict,) = tried(first, judged(state, Verdict.APPROVED, dismissed), under=strict).verdicts

    assert verdict.changed is False


def test_the_rule_based_judge_judges_again() -> None:
    """It has no verdict of its own that would have to stay."""
    first, state = reviewed(issue("HIGH", "halt"))
    judge = judged(state, Verdict.REWRITE, AdjudicationDecision("clear-001"))
    rules = policy(
        *STEPS[:2],
        step("adjudicate", "judge", agent="policy"),
        default_behavior=behaves(high="ignore"),
    )

    (verdict,) = tried(first, judge, under=rules).verdicts

    assert (verdict.was, verdict.now) == (Verdict.REWRITE, Verdict.APPROVED)


def test_a_run_diverges_at_the_first_step_with_another_result() -> None:
    """What was recorded after that point does not apply to the other policy."""
    first, state = reviewed(issue("MEDIUM", "continue"), by="structure")
    judge = judged(state, Verdict.APPROVED, AdjudicationDecision("clear-001"), by="judge")
    later, _ = reviewed(issue("LOW", "ignore"), by="style")
    steps = (*STEPS, step("critique", "style"))
    strict = policy(
        *steps,
        adjudication=AdjudicationConfig(block_on=tuple(Severity)),
        default_behavior=behaves(low="escalate"),
    )

    assert tried(first, judge, later, under=strict).parts_at == "round 1, step judge"
