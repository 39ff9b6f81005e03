"""Has severe findings confirmed by another agent before they block.

Critics are noisy, and every false alarm costs a round. An agent that gets only the passage, the
rule and the claim is asked whether the claim is true. A finding that it does not confirm is
recorded and set aside. An answer that cannot be read confirms: a real defect must not pass
because of a bad answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from signoff.core.context import StepContext
from signoff.core.digest import digest
from signoff.core.effects import ProductPrompt
from signoff.errors import AgentBadOutput
from signoff.flows.flow import Flow
from signoff.flows.model import VerifyConfig
from signoff.flows.state import FlowState
from signoff.review.constraint import Constraint
from signoff.review.critique import Critique, CritiqueIssue
from signoff.review.evidence import ArtifactText
from signoff.review.finding import is_set_aside
from signoff.review.own_words import Material
from signoff.review.prompts import verifier_prompt
from signoff.review.verification import Confirmation, parse_confirmation

CONTEXT_LINES = 8
"""Lines that are shown before and after the quoted passage."""


@dataclass(frozen=True)
class Verifier:
    """Asks the confirming agent of a flow about the severe issues of one critique."""

    flow: Flow
    state: FlowState
    text: ArtifactText
    config: VerifyConfig

    async def verify(
        self, ctx: StepContext, critique: Critique, constraint: Constraint
    ) -> tuple[Critique, list[dict[str, Any]]]:
        """Returns a critique with unconfirmed issues set aside, and the new answers to keep."""
        issues, notes, answers = [], list(critique.notes), []
        for issue in critique.issues:
            if issue.severity.rank > self.config.min_severity.rank or is_set_aside(issue):
                issues.append(issue)
                continue
            prompt = self._prompt(issue, constraint)
            # An answer holds for this claim about this passage only: another claim about the same
            # words may be true, and other words around them may make the same claim true.
            request = digest(["verify", self.config.agent, prompt.material])
            answered = self.state.answered.get(request)
            if answered is None:
                answered = (await self._ask(ctx, prompt)).to_json()
                answers.append({"request": request, "answer": answered})
            confirmation = Confirmation.from_json(answered)
            if confirmation.confirmed:
                issues.append(issue)
                continue
            why = f"not confirmed by {self.config.agent}: {confirmation.reason}"
            notes.append(f"{issue.id} was {why}")
            issues.append(replace(issue, set_aside=why))
        return replace(critique, issues=tuple(issues), notes=tuple(notes)), answers

    def _prompt(self, issue: CritiqueIssue, constraint: Constraint) -> ProductPrompt:
        return verifier_prompt(
            goal=self.flow.goal.text,
            passage=self._passage(issue),
            constraint=constraint,
            issue=issue,
            sources=self.state.source(constraint.id),
            structured=self.flow.capabilities(self.config.agent).json_schema,
            templates=self.flow.prompts,
        )

    async def _ask(self, ctx: StepContext, prompt: ProductPrompt) -> Confirmation:
        read = partial(parse_confirmation, material=Material(prompt))
        try:
            checked = await ctx.ask(self.config.agent, prompt, key="verify", read=read)
        except AgentBadOutput as error:
            return Confirmation(confirmed=True, reason=f"the answer cannot be read: {error}")
        return checked.value or Confirmation(confirmed=True)

    def _passage(self, issue: CritiqueIssue) -> str:
        """Returns the lines around the quote; the whole artifact if something is missing."""
        found = self.text.lines_of(issue.evidence) if not issue.omission else []
        if not found:
            return self.state.artifact
        lines = self.state.artifact.split("\n")
        first, last = found[0][0], found[-1][1]
        return "\n".join(lines[max(0, first - CONTEXT_LINES) : last + 1 + CONTEXT_LINES])
