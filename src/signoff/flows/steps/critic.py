"""One critic's review of the artifact against one constraint, checked before it counts.

A reply that cannot be parsed, a verdict that contradicts its findings and quotes that do not
occur in the artifact are sent back to the critic once, all together. If the reply is still
unusable, a human decides; quotes that still do not occur are only marked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from signoff.core.checked import Checked, Otherwise
from signoff.core.context import StepContext
from signoff.core.digest import digest
from signoff.core.effects import ProductPrompt, Reply
from signoff.core.requests import RETRY, Choice, Option, Request
from signoff.errors import AgentBadOutput
from signoff.flows.flow import Flow
from signoff.flows.state import FlowState
from signoff.flows.steps.handler import FlowHandler
from signoff.flows.steps.material import analysis
from signoff.flows.steps.updates import shortened
from signoff.flows.steps.verify import Verifier
from signoff.light_dataclass import light_dataclass
from signoff.review.constraint import Constraint
from signoff.review.critique import OMISSION, Critique, CritiqueIssue, Overall
from signoff.review.evidence import EVIDENCE_RULE, ArtifactText, find_problems, mark_unverified
from signoff.review.memory import known_findings
from signoff.review.own_words import Material
from signoff.review.parsing import MOST_ISSUES, parse_critique
from signoff.review.prompts import critic_prompt

PASS, FAIL, FINDINGS = "pass", "fail", "findings"
"""What a human can decide about a review that cannot be used as it is."""


@light_dataclass(frozen=True)
class CriticHandler(FlowHandler):
    """The handler of one item of a critique step: a constraint and an agent."""

    state: FlowState
    text: ArtifactText

    async def __call__(self, ctx: StepContext, item: Mapping[str, str]) -> dict[str, Any]:
        """Returns a critique that can be relied on, with the behavior of each finding.

        A critic that has answered the same question in this run is not asked again. Programs
        are: they cost nothing, and may look at more than the artifact.
        """
        agent, constraint = item["agent"], self.flow.by_id[item["constraint"]]
        # A check gets the bare artifact, and its findings quote its own output.
        exact = self.flow.capabilities(agent).deterministic
        output = await analysis(ctx, self.flow, constraint, self.state.artifact)
        prompt = review_prompt(self.flow, self.state, constraint, agent, output)
        request = digest([agent, self.step.model, prompt.material])
        answered = self.state.answered.get(request) if not exact else None
        if answered is not None:
            ctx.progress(f"{constraint.id}: unchanged since {agent} reviewed it")
            return {**answered, "iteration": ctx.iteration, "request": request, "reused": True}
        unread = Critique(constraint.id, agent, ctx.iteration, Overall.ERROR)
        checked = await self._ask(ctx, prompt, constraint, unread, exact=exact)
        critique = _decided(checked, constraint, unread)
        critique = self.flow.config.with_behaviors(critique, constraint)
        verified: list[dict[str, Any]] = []
        # What a human or a program found needs no agent to confirm it.
        if self.flow.config.verify is not None and not exact and checked.answer is None:
            verifier = Verifier(self.flow, self.state, self.text, self.flow.config.verify)
            critique, verified = await verifier.verify(ctx, critique, constraint)
        return {**critique.to_json(), "request": request, "verified": verified}

    async def _ask(
        self,
        ctx: StepContext,
        prompt: ProductPrompt,
        constraint: Constraint,
        unread: Critique,
        *,
        exact: bool,
    ) -> Checked[Critique]:
        agent = unread.reviewer
        options: dict[str, Any] = (
            {"artifact": self.state.artifact, "constraint": constraint.id} if exact else {}
        )
        return await ctx.ask(
            agent,
            prompt,
            key=constraint.id,
            read=partial(self._read, unread, constraint, prompt, quotes_artifact=not exact),
            otherwise=Otherwise(partial(self._unusable, agent, constraint), key="unusable"),
            about={"title": f"Review against {constraint.id!r}"},
            **self.call_options,
            **options,
        )

    def _read(
        self,
        unread: Critique,
        constraint: Constraint,
        prompt: ProductPrompt,
        reply: Reply,
        *,
        quotes_artifact: bool,
    ) -> Critique:
        """Returns the critique in a reply; raises everything that is wrong with it."""
        block_on = self.flow.config.adjudication.block_on
        # A check is a program: it quotes nothing, and all of its findings count.
        critique = parse_critique(
            reply,
            constraint_id=constraint.id,
            reviewer=unread.reviewer,
            iteration=unread.iteration,
            rules={rule.id: rule.default_severity for rule in constraint.rules},
            material=Material(prompt, self.flow.goal.text) if quotes_artifact else Material(),
            most_issues=self.flow.config.max_findings if quotes_artifact else MOST_ISSUES,
            block_on=block_on,
        )
        if not quotes_artifact:
            return critique
        found = find_problems(critique, self.text, block_on)
        if not found:
            return critique
        marked = mark_unverified(critique, found)
        raise AgentBadOutput("", *found.messages(), value=marked, usable=not found.contradiction)

    def _unusable(self, agent: str, constraint: Constraint, last: Checked[Critique]) -> Request:
        options = [Option(RETRY), Option(PASS), Option(FAIL, requires_input=True)]
        prompt = (
            f"{agent}'s review against {constraint.id!r} cannot be used, and sending it back did "
            f"not help: {'; '.join(last.problems).rstrip('.')}.\n"
            f"{RETRY}: ask it again. {PASS}: the artifact complies. {FAIL}: record what you write "
            "as a finding."
        )
        if last.value is not None and last.value.issues:
            options.insert(1, Option(FINDINGS))
            prompt += f" {FINDINGS}: count its findings, whatever its verdict."
        shown = {"critique": _noted(last.value, last).to_json()} if last.value else {}
        several = len(self.flow.reviewers(self.step, constraint)) > 1
        name = f"critique_{constraint.id}_{agent}" if several else f"critique_{constraint.id}"
        return Choice(ProductPrompt(prompt), options, question_id=name, shown=shown)


def review_prompt(
    flow: Flow, state: FlowState, constraint: Constraint, agent: str, analysis: str = ""
) -> ProductPrompt:
    """Returns the prompt for a critic of a constraint."""
    return critic_prompt(
        goal=flow.goal.text,
        artifact=state.artifact,
        constraint=constraint,
        sources=state.source(constraint.id),
        analysis=analysis,
        guidance=state.guidance,
        known=known_findings(state.ledger, constraint.id),
        goal_sources=state.source(),
        structured=flow.capabilities(agent).json_schema,
        max_findings=flow.config.max_findings,
        templates=flow.prompts,
    )


def _noted(critique: Critique, checked: Checked[Critique]) -> Critique:
    """Returns a critique with a note on why the previous one was sent back."""
    if not checked.sent_back:
        return critique
    problems = "; ".join(each for each in checked.sent_back if each != EVIDENCE_RULE)
    return replace(critique, notes=(f"sent back: {shortened(problems)}", *critique.notes))


def _decided(checked: Checked[Critique], constraint: Constraint, unread: Critique) -> Critique:
    """Returns the critique that counts: the critic's, or what a human made of it."""
    base, answer = _noted(checked.value or unread, checked), checked.answer
    if answer is None:
        return base
    notes = (*base.notes, f"{answer.by or 'a human'} decided: {answer.value}")
    if answer.value == FINDINGS:
        return replace(base, overall=Overall.FAIL, notes=notes)
    if answer.value == PASS:
        return replace(base, overall=Overall.PASS, issues=(), notes=notes)
    finding = CritiqueIssue(
        id=f"{base.constraint_id}-001",
        rule_id=constraint.rules[0].id if constraint.rules else constraint.id,
        finding=answer.text,
        evidence=OMISSION,
        confidence=1.0,
    )
    return replace(base, overall=Overall.FAIL, issues=(finding,), notes=notes)
