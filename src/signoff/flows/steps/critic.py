"""One critic's reading of the artifact against one constraint, checked before it counts.

A reply that cannot be read, a verdict its findings contradict and quotes that stand
nowhere are told to the critic once, all together. What stays unreadable or contradictory
goes to a person; quotes that still do not exist stay marked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from signoff.core.context import StepContext
from signoff.core.requests import Answer, Choice, Option
from signoff.errors import AgentBadOutput
from signoff.flows.flow import Flow
from signoff.flows.model import WorkflowStep
from signoff.flows.reviewers import reviewers_of
from signoff.flows.state import FlowState
from signoff.flows.steps.material import analysis
from signoff.flows.steps.remarks import shortened
from signoff.review.constraint import Constraint
from signoff.review.critique import OMISSION, Critique, CritiqueIssue, Overall
from signoff.review.evidence import (
    EVIDENCE_RULE,
    ArtifactText,
    mark_unverified,
    problems_of,
)
from signoff.review.parsing import Unreadable, parse_critique
from signoff.review.prompts import critic_correction, critic_prompt

RETRY, PASS, FAIL, FINDINGS = "retry", "pass", "fail", "findings"
"""What a person can say about a reading that cannot be used as it is."""

CHECK = "check"
"""The kind of agent that computes: it never changes its mind, and quotes its own output."""


@dataclass(frozen=True)
class CriticReply:
    """A critique as far as it could be read, and what is wrong with it."""

    critique: Critique | None
    wrong: tuple[str, ...] = ()
    """In words the critic can act on."""
    needs_person: bool = False
    """Whether it cannot count as it is."""
    marked: Critique | None = None
    """The same with the issues marked whose quotes stand nowhere."""
    notes: tuple[str, ...] = ()
    """What stays known of it, even where there is no critique to keep it."""


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
        critique = await self._usable(ctx, item["agent"], constraint, prompt, text)
        return self._with_behaviors(critique, constraint).to_json()

    async def _usable(
        self, ctx: StepContext, agent: str, constraint: Constraint, prompt: str, text: ArtifactText
    ) -> Critique:
        """Returns a reading that can count: the critic's, or what a person made of it."""
        while True:
            reading = await self._read(ctx, agent, constraint, prompt, text)
            if reading.critique is not None and not reading.needs_person:
                return reading.critique
            answer = await self._ask_person(ctx, agent, constraint, reading)
            if answer.value != RETRY:
                return _as_decided(answer, reading, constraint, agent, ctx.iteration)

    async def _read(
        self, ctx: StepContext, agent: str, constraint: Constraint, prompt: str, text: ArtifactText
    ) -> CriticReply:
        """Asks once, and once more with what was wrong."""
        exact = self.flow.kind(agent) == CHECK
        title = f"Review against {constraint.id!r}"
        reading = await self._once(ctx, agent, constraint, (title, prompt), text)
        if not reading.wrong or (exact and reading.critique is not None):
            return reading
        ctx.progress(f"{constraint.id} by {agent} is sent back: {'; '.join(reading.wrong)}")
        again = f"{prompt}\n\n{critic_correction(reading.wrong)}"
        said = "; ".join(each for each in reading.wrong if each != EVIDENCE_RULE)
        note = f"sent back: {shortened(said)}"
        second = await self._once(ctx, agent, constraint, (f"{title}; {note}", again), text)
        return replace(second, critique=_noted(second.marked, note), notes=(note,))

    async def _once(
        self,
        ctx: StepContext,
        agent: str,
        constraint: Constraint,
        asked: tuple[str, str],
        text: ArtifactText,
    ) -> CriticReply:
        title, prompt = asked
        exact = self.flow.kind(agent) == CHECK
        # A check is given the bare artifact; what it says of itself is exact.
        given = {"artifact": self.state.artifact, "constraint": constraint.id}
        options: dict[str, Any] = given if exact else {}
        try:
            reply = await ctx.ask(
                agent,
                prompt,
                key=constraint.id,
                model=self.step.model,
                timeout=self.step.timeout,
                about={"title": title},
                **options,
            )
            critique = parse_critique(
                reply.text,
                constraint_id=constraint.id,
                reviewer=agent,
                iteration=ctx.iteration,
                rules={rule.id: rule.default_severity for rule in constraint.rules},
            )
        except (Unreadable, AgentBadOutput) as error:
            return CriticReply(None, (str(error),), needs_person=True)
        if exact:
            return CriticReply(critique, marked=critique)
        found = problems_of(critique, text, self.flow.config.adjudication.block_on)
        marked = mark_unverified(critique, found)
        return CriticReply(critique, tuple(found.told()), bool(found.contradiction), marked)

    async def _ask_person(
        self, ctx: StepContext, agent: str, constraint: Constraint, reading: CriticReply
    ) -> Answer:
        options = [Option(RETRY), Option(PASS), Option(FAIL, requires_input=True)]
        if reading.critique is not None and reading.critique.issues:
            options.insert(1, Option(FINDINGS))
        prompt = (
            f"{agent}'s review against {constraint.id!r} cannot be used, and telling it so did not "
            f"help: {'; '.join(reading.wrong).rstrip('.')}.\n"
            f"{RETRY} asks it again, {PASS} takes the artifact as passed, {FAIL} records what you "
            f"write as a finding"
            + (
                f", {FINDINGS} counts its findings whatever its verdict."
                if len(options) > 3
                else "."
            )
        )
        shown = {"critique": reading.critique.to_json()} if reading.critique else {}
        several = len(reviewers_of(self.flow, self.step, constraint)) > 1
        asked = f"critique_{constraint.id}_{agent}" if several else f"critique_{constraint.id}"
        request = Choice(prompt, options, question_id=asked, shown=shown)
        return await ctx.wait(request, key="unusable")

    def _with_behaviors(self, critique: Critique, constraint: Constraint) -> Critique:
        behavior = self.flow.config.behavior
        issues = (
            replace(issue, behavior=behavior(constraint, issue.severity).behavior.value)
            for issue in critique.issues
        )
        return replace(critique, issues=tuple(issues))


def _noted(critique: Critique | None, note: str) -> Critique | None:
    return replace(critique, notes=(note, *critique.notes)) if critique else None


def _as_decided(
    answer: Answer, reading: CriticReply, constraint: Constraint, agent: str, iteration: int
) -> Critique:
    """Returns the critique a person's decision stands for."""
    note = f"{answer.by or 'a person'} decided: {answer.value}"
    nothing = Critique(constraint.id, agent, iteration, Overall.ERROR, notes=reading.notes)
    base = reading.critique or nothing
    if answer.value == FINDINGS:
        return replace(base, overall=Overall.FAIL, notes=(*base.notes, note))
    if answer.value == PASS:
        return replace(base, overall=Overall.PASS, issues=(), notes=(*base.notes, note))
    stated = CritiqueIssue(
        id=f"{constraint.id}-001",
        rule_id=constraint.rules[0].id if constraint.rules else constraint.id,
        finding=answer.text,
        evidence=OMISSION,
        confidence=1.0,
    )
    return replace(base, overall=Overall.FAIL, issues=(stated,), notes=(*base.notes, note))
