"""Tests of what another policy would have made of a run, over steps as a run records them."""

import json
from dataclasses import replace
from typing import Any

import pytest

from signoff.flows.model import AdjudicationConfig, GenflowConfig
from signoff.flows.replay import RecordedVisit, Replay, replay
from signoff.flows.state import NOTHING_REVIEWED, stored
from signoff.flows.step import WorkflowStep
from signoff.review.adjudication import Adjudication, AdjudicationDecision, Pursuit, Verdict
from signoff.review.behaviors import ConstraintBehavior, IssueBehavior, Level
from signoff.review.constraint import Constraint
from signoff.review.critique import Critique, CritiqueIssue, Overall
from signoff.review.severity import Severity
from tests.unit.flows.harness import step

STEPS = (step("generate", "draft"), step("critique", "review"), step("adjudicate", "judge"))
CONSTRAINTS = {"clear": Constraint("clear")}


def policy(*steps: WorkflowStep, **fields: Any) -> GenflowConfig:
    return GenflowConfig(workflow=steps or STEPS, **fields)


def behaves(**said: str) -> ConstraintBehavior:
    return ConstraintBehavior.from_dict(said)


def issue(severity: str, behavior: str, name: str = "clear-001") -> CritiqueIssue:
    made = CritiqueIssue(name, "r", Severity(severity), "", "wrong", "OMISSION")
    return replace(made, behavior=behavior, finding_id=f"f-{name}")


def reviewed(
    *issues: CritiqueIssue, iteration: int = 1, by: str = "review"
) -> tuple[RecordedVisit, dict[str, Any]]:
    """Returns a critique step, and the state it left."""
    overall = Overall.FAIL if issues else Overall.PASS
    made = [stored(Critique("clear", "claude", iteration, overall, issues), by)]
    after = {
        **NOTHING_REVIEWED,
        "critiques_by_step": {by: made},
        "unadjudicated_critiques": made,
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
    """Returns a judge's step on a state."""
    said = Adjudication(iteration, status, decisions, stated=stated).to_json()
    after = {**state, "last_adjudication": said, "step": {"kind": "adjudicate", "step": by}}
    return RecordedVisit(by, iteration, state, after)


def tried(*history: RecordedVisit, under: GenflowConfig | None = None) -> Replay:
    return replay(history, under or policy(), CONSTRAINTS)


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
def test_each_issue_is_routed_anew_by_the_strongest_level(
    stated: dict[str, Any], now: IssueBehavior, level: Level
) -> None:
    """The point of a replay: what every finding would have done."""
    done, _ = reviewed(issue("HIGH", "halt"))

    (rerouted,) = tried(done, under=policy(**stated)).issues

    assert (rerouted.now, rerouted.level) == (now, level)
    assert rerouted.changed is (now is not IssueBehavior.HALT)


def test_an_approval_falls_under_a_stricter_policy() -> None:
    """Somebody who tightens the policy wants to know which approvals were worth less."""
    first, state = reviewed(issue("MEDIUM", "continue"))
    judge = judged(state, Verdict.APPROVED, AdjudicationDecision("clear-001"))
    strict = policy(adjudication=AdjudicationConfig(block_on=tuple(Severity)))

    result = tried(first, judge, under=strict)

    (verdict,) = result.verdicts
    assert (verdict.was, verdict.now) == (Verdict.APPROVED, Verdict.REWRITE)
    assert verdict.blocking == ("clear-001",)
    assert result.parts_at == "iteration 1, step judge"


def test_an_approval_that_did_not_stand_stands_under_a_milder_policy() -> None:
    """The judge had said APPROVED; only the old policy was in the way."""
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


def test_a_judges_own_word_to_rewrite_is_kept() -> None:
    """A policy cannot approve what the judge wanted rewritten."""
    first, state = reviewed(issue("HIGH", "halt"))
    judge = judged(state, Verdict.REWRITE, AdjudicationDecision("clear-001"))

    (verdict,) = tried(first, judge, under=policy(default_behavior=behaves(high="ignore"))).verdicts

    assert (verdict.now, verdict.blocking) == (Verdict.REWRITE, ())


def test_what_the_judge_dismissed_does_not_block_under_another_policy() -> None:
    """His decisions were about the text; the policy is about severities."""
    first, state = reviewed(issue("MEDIUM", "continue"))
    dismissed = AdjudicationDecision("clear-001", status=Pursuit.DISMISSED)
    strict = policy(adjudication=AdjudicationConfig(block_on=tuple(Severity)))

    (verdict,) = tried(first, judged(state, Verdict.APPROVED, dismissed), under=strict).verdicts

    assert verdict.changed is False


def test_the_judge_that_is_only_rules_judges_anew() -> None:
    """Nothing was said that would have to be kept."""
    first, state = reviewed(issue("HIGH", "halt"))
    judge = judged(state, Verdict.REWRITE, AdjudicationDecision("clear-001"))
    rules = policy(
        *STEPS[:2],
        step("adjudicate", "judge", agent="policy"),
        default_behavior=behaves(high="ignore"),
    )

    (verdict,) = tried(first, judge, under=rules).verdicts

    assert (verdict.was, verdict.now) == (Verdict.REWRITE, Verdict.APPROVED)


def test_a_run_parts_at_the_first_step_that_would_have_gone_another_way() -> None:
    """What was recorded after that point says nothing about the other policy."""
    first, state = reviewed(issue("MEDIUM", "continue"), by="structure")
    judge = judged(state, Verdict.APPROVED, AdjudicationDecision("clear-001"), by="judge")
    later, _ = reviewed(issue("LOW", "ignore"), by="style")
    steps = (*STEPS, step("critique", "style"))
    strict = policy(
        *steps,
        adjudication=AdjudicationConfig(block_on=tuple(Severity)),
        default_behavior=behaves(low="escalate"),
    )

    assert tried(first, judge, later, under=strict).parts_at == "iteration 1, step judge"


def test_a_run_that_would_have_gone_the_same_way_says_so() -> None:
    """An empty answer would leave open whether anything was looked at."""
    first, state = reviewed(issue("HIGH", "halt"))
    judge = judged(state, Verdict.REWRITE, AdjudicationDecision("clear-001"))

    result = tried(first, judge)

    assert result.parts_at == ""
    said = result.to_json()
    assert (said["changed"], said["parts_at"]) == (False, None)
    assert (len(said["issues"]), len(said["verdicts"])) == (1, 1)
    assert json.loads(json.dumps(said)) == said


def test_judges_the_other_policy_does_not_know_are_left_out() -> None:
    """A whole flow file with other steps is a policy, too."""
    first, state = reviewed(issue("HIGH", "halt"))
    judge = judged(state, Verdict.APPROVED)

    assert tried(first, judge, under=policy(*STEPS[:2])).verdicts == ()
