"""A human as the judge: a decision about each finding, never a format to fill in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from signoff.core.context import StepContext
from signoff.core.effects import ProductPrompt
from signoff.core.questions import Option, UserQuestion
from signoff.core.requests import Answer, Choice, Questions
from signoff.core.severity import Severity
from signoff.flows.flow import Flow
from signoff.flows.state import FlowState
from signoff.flows.steps.decision_material import judging_material, sign_off_material
from signoff.review.adjudication import Adjudication, AdjudicationDecision, Pursuit, Verdict
from signoff.review.artifact import locate
from signoff.review.critique import Critique, CritiqueIssue
from signoff.review.finding import blocking_first
from signoff.review.policy import policy_judge
from signoff.review.work_order import without_issues
from signoff.runtime.amounts import count

FIX, DISMISS = "fix", "dismiss"
APPROVE, CHANGES = "approve", "request changes"
KEY = "decisions"
MOST_QUESTIONS = 40
"""Findings that a human decides about one by one, what blocks first; the others are fixed."""


async def ask_human(
    ctx: StepContext,
    flow: Flow,
    state: FlowState,
    critiques: Sequence[Critique],
) -> Adjudication:
    """Returns the verdict of a human; what they do not decide about is pursued."""
    block_on = flow.config.adjudication.block_on
    issues = _issues(critiques, block_on)
    shown = {
        **sign_off_material(ctx, flow, state),
        "rules": judging_material(flow, state, flow.by_id)["rules"],
    }
    if not issues:
        return await _ask_without_findings(ctx, state, shown)
    questions = [_question(state, name, issue) for name, issue in issues[:MOST_QUESTIONS]]
    prompt = "Decide about each finding; what you write with it is the reason of your dismissals."
    if len(issues) > MOST_QUESTIONS:
        others = count(len(issues) - MOST_QUESTIONS, "more finding")
        prompt += f" {others} will have to be fixed."
    material = {"version": state.version, "findings": [name for name, _ in issues]}
    request = Questions(
        ProductPrompt(prompt, material), questions, question_id="judge", shown=shown
    )
    answer = await ctx.wait(request, key=KEY)
    by_rules = policy_judge(critiques, iteration=ctx.iteration, block_on=block_on)
    decided = _with_decisions(by_rules, answer)
    status = Verdict.REWRITE if decided.pursued(block_on) else Verdict.APPROVED
    return replace(_with_status(decided, status), by=answer.by)


def _issues(
    critiques: Sequence[Critique], block_on: Sequence[Severity]
) -> list[tuple[str, CritiqueIssue]]:
    """Returns each finding once, under the name that its decision has; what blocks first."""
    found: dict[str, CritiqueIssue] = {}
    for issue in (issue for critique in critiques for issue in critique.issues):
        found.setdefault(issue.finding_id or issue.id, issue)
    in_order = blocking_first(block_on)
    return sorted(found.items(), key=lambda entry: in_order(entry[1]))


def _question(state: FlowState, name: str, issue: CritiqueIssue) -> UserQuestion:
    where = (
        locate(state.content, issue.evidence, issue.path, issue.line)
        if not issue.omission
        else None
    )
    place = f"{where or issue.path}: " if issue.path else ""
    quote = f' "{_flat(issue.evidence)[:300]}"' if not issue.omission else ""
    fix = f" Suggested: {_flat(issue.suggested_fix)}" if issue.suggested_fix else ""
    text = f"{place}[{issue.severity.value}] {_flat(issue.finding)}{quote}{fix}"
    options = (
        Option(FIX, description="it is a problem"),
        Option(DISMISS, description="it is none, or not worth a change"),
    )
    return UserQuestion(name, text, options)


async def _ask_without_findings(
    ctx: StepContext, state: FlowState, shown: Mapping[str, Any]
) -> Adjudication:
    request = Choice(
        ProductPrompt("No critic found anything to decide about.", {"version": state.version}),
        [Option(APPROVE), Option(CHANGES, requires_input=True, description="write what to change")],
        question_id="judge",
        shown=shown,
    )
    answer = await ctx.wait(request, key=KEY)
    status = Verdict.APPROVED if answer.value == APPROVE else Verdict.REWRITE
    bill = "" if answer.value == APPROVE else answer.text
    return Adjudication(ctx.iteration, status, bill_of_work=bill, by=answer.by)


def _with_decisions(verdict: Adjudication, answer: Answer) -> Adjudication:
    chosen: Mapping[str, str] = answer.value if isinstance(answer.value, Mapping) else {}
    reason = answer.text or f"dismissed by {answer.by or 'a human'}"

    def decided(each: AdjudicationDecision) -> AdjudicationDecision:
        if chosen.get(each.finding_id, chosen.get(each.issue_id)) != DISMISS:
            return each
        return replace(each, status=Pursuit.DISMISSED, rationale=reason, guidance=None)

    return replace(verdict, decisions=tuple(decided(each) for each in verdict.decisions))


def _with_status(verdict: Adjudication, status: Verdict) -> Adjudication:
    dismissed = [d for d in verdict.decisions if d.status is Pursuit.DISMISSED]
    names = {name for d in dismissed for name in (d.issue_id, d.finding_id)}
    bill = without_issues(verdict.bill_of_work, names) if status is Verdict.REWRITE else ""
    return replace(verdict, status=status, bill_of_work=bill)


def _flat(text: str) -> str:
    return " ".join(text.split())
