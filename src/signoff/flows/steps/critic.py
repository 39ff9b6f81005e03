"""One critic's reading of the artifact against one constraint, checked before it counts.

A reply that cannot be read, a verdict its findings contradict and quotes that stand
nowhere are told to the critic once, all together. What stays unreadable or contradictory
goes to a person; quotes that still do not exist stay marked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from signoff.core.checked import Checked, Otherwise
from signoff.core.context import StepContext
from signoff.core.effects import ProductPrompt, Reply
from signoff.core.requests import RETRY, Choice, Option, Request
from signoff.errors import AgentBadOutput
from signoff.flows.flow import Flow
from signoff.flows.reviewers import reviewers_of
from signoff.flows.state import FlowState
from signoff.flows.step import WorkflowStep
from signoff.flows.steps.material import analysis
from signoff.flows.steps.updates import shortened
from signoff.review.constraint import Constraint
from signoff.review.critique import OMISSION, Critique, CritiqueIssue, Overall
from signoff.review.evidence import (
    EVIDENCE_RULE,
    ArtifactText,
    find_problems,
    mark_unverified,
)
from signoff.review.parsing import parse_critique
from signoff.review.prompts import critic_prompt

PASS, FAIL, FINDINGS = "pass", "fail", "findings"
"""What a person can say about a reading that cannot be used as it is."""


@dataclass(frozen=True)
class CriticHandler:
    """Reads for one critique step."""

    flow: Flow
    step: WorkflowStep
    state: FlowState

    async def __call__(
        self, ctx: StepContext, item: Mapping[str, str], *, text: ArtifactText
    ) -> dict[str, Any]:
        """Returns a critique that can be relied on, with what each finding does to the review."""
        constraint = self.flow.by_id[item["constraint"]]
        prompt = critic_prompt(
            goal=self.flow.goal.text,
            artifact=self.state.artifact,
            constraint=constraint,
            sources=self.state.source(constraint.id),
            analysis=await analysis(ctx, self.flow, constraint, self.state.artifact),
            guidance=self.state.guidance,
        )
        agent = item["agent"]
        # A check gets the bare artifact, and its findings quote its own output.
        exact = self.flow.capabilities(agent).deterministic
        options: dict[str, Any] = (
            {"artifact": self.state.artifact, "constraint": constraint.id} if exact else {}
        )
        checked = await ctx.ask(
            agent,
            prompt,
            key=constraint.id,
            read=partial(self._read, ctx, agent, constraint, None if exact else text),
            otherwise=Otherwise(partial(self._unusable, agent, constraint), key="unusable"),
            model=self.step.model,
            timeout=self.step.timeout,
            about={"title": f"Review against {constraint.id!r}"},
            **options,
        )
        unread = Critique(constraint.id, agent, ctx.iteration, Overall.ERROR)
        critique = _decided(checked, constraint, unread)
        return self._with_behaviors(critique, constraint).to_json()

    def _read(
        self,
        ctx: StepContext,
        agent: str,
        constraint: Constraint,
        text: ArtifactText | None,
        reply: Reply,
    ) -> Critique:
        """Returns the critique in a reply; raises everything that is wrong with it."""
        critique = parse_critique(
            reply.text,
            constraint_id=constraint.id,
            reviewer=agent,
            iteration=ctx.iteration,
            rules={rule.id: rule.default_severity for rule in constraint.rules},
        )
        if text is None:
            return critique
        found = find_problems(critique, text, self.flow.config.adjudication.block_on)
        if not found:
            return critique
        marked = mark_unverified(critique, found)
        raise AgentBadOutput("", *found.messages(), value=marked, usable=not found.contradiction)

    def _unusable(self, agent: str, constraint: Constraint, last: Checked[Critique]) -> Request:
        options = [Option(RETRY), Option(PASS), Option(FAIL, requires_input=True)]
        if last.value is not None and last.value.issues:
            options.insert(1, Option(FINDINGS))
        prompt = (
            f"{agent}'s review against {constraint.id!r} cannot be used, and telling it so did not "
            f"help: {'; '.join(last.problems).rstrip('.')}.\n"
            f"{RETRY} asks it again, {PASS} takes the artifact as passed, {FAIL} records what you "
            f"write as a finding"
            + (
                f", {FINDINGS} counts its findings whatever its verdict."
                if len(options) > 3
                else "."
            )
        )
        shown = {"critique": _noted(last.value, last).to_json()} if last.value else {}
        several = len(reviewers_of(self.flow, self.step, constraint)) > 1
        asked = f"critique_{constraint.id}_{agent}" if several else f"critique_{constraint.id}"
        return Choice(ProductPrompt(prompt), options, question_id=asked, shown=shown)

    def _with_behaviors(self, critique: Critique, constraint: Constraint) -> Critique:
        behavior = self.flow.config.behavior
        issues = (
            replace(issue, behavior=behavior(constraint, issue.severity).behavior.value)
            for issue in critique.issues
        )
        return replace(critique, issues=tuple(issues))


def _noted(critique: Critique, checked: Checked[Critique]) -> Critique:
    """Returns a critique that says why the one before it was sent back."""
    if not checked.sent_back:
        return critique
    problems = "; ".join(each for each in checked.sent_back if each != EVIDENCE_RULE)
    return replace(critique, notes=(f"sent back: {shortened(problems)}", *critique.notes))


def _decided(checked: Checked[Critique], constraint: Constraint, unread: Critique) -> Critique:
    """Returns the critique that counts: the critic's, or what a human made of it."""
    base, answer = _noted(checked.value or unread, checked), checked.answer
    if answer is None:
        return base
    notes = (*base.notes, f"{answer.by or 'a person'} decided: {answer.value}")
    if answer.value == FINDINGS:
        return replace(base, overall=Overall.FAIL, notes=notes)
    if answer.value == PASS:
        return replace(base, overall=Overall.PASS, issues=(), notes=notes)
    stated = CritiqueIssue(
        id=f"{base.constraint_id}-001",
        rule_id=constraint.rules[0].id if constraint.rules else constraint.id,
        finding=answer.text,
        evidence=OMISSION,
        confidence=1.0,
    )
    return replace(base, overall=Overall.FAIL, issues=(stated,), notes=notes)
