"""Tests of another policy on recorded steps of a run."""

from dataclasses import replace
from typing import Any

import pytest

from signoff.core.severity import IssueBehavior, Severity
from signoff.review.flow.model import AdjudicationConfig, GenflowConfig, WorkflowStep
from signoff.review.flow.policy import RecordedVisit, Replay, recompute
from signoff.review.flow.state import NOTHING_REVIEWED, stored
from signoff.review.pure.constraint import Constraint, ConstraintBehavior, Level
from signoff.review.pure.critique import (
    Adjudication,
    AdjudicationDecision,
    Critique,
    CritiqueIssue,
    Overall,
    Pursuit,
    Verdict,
)
from tests.tables import table
from tests.unit.review.flow.harness import step

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

    assert (rerouted.now, rerouted.decided_by) == (now, level)
    assert rerouted.changed is (now is not IssueBehavior.HALT)


STRICT = policy(adjudication=AdjudicationConfig(block_on=tuple(Severity)))
MILD = policy(
    adjudication=AdjudicationConfig(block_on=(Severity.CRITICAL,)),
    default_behavior=behaves(high="continue"),
)
IGNORES = {"default_behavior": behaves(high="ignore")}
BY_RULES = policy(*STEPS[:2], step("adjudicate", "judge", agent="policy"), **IGNORES)
PURSUED = AdjudicationDecision("clear-001")
DISMISSED = replace(PURSUED, status=Pursuit.DISMISSED)
PASS, WORK = Verdict.APPROVED, Verdict.REWRITE
ID = ("f-clear-001",)


@table(
    ("found", "was", "stated", "decision", "under", "now", "blocking"),
    {
        "a stricter policy rejects": ("MEDIUM", PASS, None, PURSUED, STRICT, WORK, ID),
        "what was overruled counts under a milder": ("HIGH", WORK, PASS, PURSUED, MILD, PASS, ()),
        "the judge wanted work": ("HIGH", WORK, None, PURSUED, policy(**IGNORES), WORK, ()),
        "the judge dismissed it": ("MEDIUM", PASS, None, DISMISSED, STRICT, PASS, ()),
        "rules have no verdict to keep": ("HIGH", WORK, None, PURSUED, BY_RULES, PASS, ()),
    },
)
def test_another_policy_changes_a_verdict_only_where_the_judge_left_it_to_the_policy(
    found: str,
    was: Verdict,
    stated: Verdict | None,
    decision: AdjudicationDecision,
    under: GenflowConfig,
    now: Verdict,
    blocking: tuple[str, ...],
) -> None:
    """Users want to know which approvals a policy affects; it cannot approve by itself."""
    first, state = reviewed(issue(found, "halt" if found == "HIGH" else "continue"))

    (verdict,) = tried(first, judged(state, was, decision, stated=stated), under=under).verdicts

    assert (verdict.was, verdict.now, verdict.blocking) == (was, now, blocking)
    assert verdict.changed is (now is not was)


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
