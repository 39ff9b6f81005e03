"""Has severe findings confirmed by another agent before they block.

Critics are noisy, and every false alarm costs a round. An agent that gets only the passage, the
rule and the claim is asked whether the claim is true. A finding that it does not confirm is
recorded and set aside. An answer that cannot be read confirms: a real defect must not pass
because of a bad answer. The same question is asked before a judge's dismissal of a CRITICAL finding
counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from signoff.core.context import StepContext
from signoff.core.digest import digest
from signoff.core.effects import ProductPrompt
from signoff.core.severity import WORST
from signoff.core.words import Label
from signoff.errors import AgentBadOutput
from signoff.flows.flow import Flow
from signoff.flows.model import VerifyConfig
from signoff.flows.state import VERIFY, FlowState
from signoff.review.adjudication import Adjudication, Pursuit
from signoff.review.constraint import Constraint
from signoff.review.critique import Critique, CritiqueIssue
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
    config: VerifyConfig

    async def verify(
        self, ctx: StepContext, critique: Critique
    ) -> tuple[Critique, list[dict[str, Any]]]:
        """Returns a critique with unconfirmed issues set aside, and the new answers to keep."""
        issues, notes, answers = [], list(critique.notes), []
        for issue in critique.issues:
            if issue.severity.rank > self.config.min_severity.rank or is_set_aside(issue):
                issues.append(issue)
                continue
            confirmation, new = await self.confirm(ctx, critique, issue)
            answers += new
            if confirmation.confirmed:
                issues.append(issue)
                continue
            why = f"not confirmed by {self.config.agent}: {confirmation.reason}"
            notes.append(f"{issue.id} was {why}")
            issues.append(replace(issue, set_aside=why))
        return replace(critique, issues=tuple(issues), notes=tuple(notes)), answers

    async def confirm(
        self, ctx: StepContext, critique: Critique, issue: CritiqueIssue
    ) -> tuple[Confirmation, list[dict[str, Any]]]:
        """Returns whether an issue is true, and the answer to keep if it is a new one."""
        prompt = self.prompt(issue, self.flow.by_id[critique.constraint_id])
        # An answer holds for this claim about this passage only: another claim about the same
        # words may be true, and other words around them may make the same claim true.
        request = digest(["verify", self.config.agent, prompt.material])
        answered = self.state.answered.get(request)
        if answered is not None:
            return Confirmation.from_json(answered), []
        about = {
            "title": f"Confirm {issue.id} of {critique.reviewer}",
            "subject": f"{issue.id}-{critique.reviewer}",
        }
        confirmation = await self._ask(ctx, prompt, about)
        return confirmation, [{"request": request, "answer": confirmation.to_json()}]

    def prompt(self, issue: CritiqueIssue, constraint: Constraint) -> ProductPrompt:
        """Returns the question about an issue."""
        # A rule about facts usually means the sources of the goal.
        sources = dict.fromkeys([self.state.source(constraint.id), self.state.source()])
        return verifier_prompt(
            goal=self.flow.goal.text,
            passage=self._passage(issue),
            constraint=constraint,
            issue=issue,
            sources="\n\n".join(filter(None, sources)),
            structured=self.flow.capabilities(self.config.agent).json_schema,
            templates=self.flow.prompts,
        )

    async def _ask(
        self, ctx: StepContext, prompt: ProductPrompt, about: dict[str, Any]
    ) -> Confirmation:
        read = partial(parse_confirmation, material=Material(prompt))
        try:
            checked = await ctx.ask(self.config.agent, prompt, key=VERIFY, read=read, about=about)
        except AgentBadOutput as error:
            return Confirmation(confirmed=True, reason=f"the answer cannot be read: {error}")
        return checked.value or Confirmation(confirmed=True)

    def _passage(self, issue: CritiqueIssue) -> str:
        """Returns the lines around the quote; the whole artifact if something is missing."""
        text = self.state.files.get(issue.path, "")
        quoted = self.state.content.text(issue.path)
        found = quoted.lines_of(issue.evidence) if not issue.omission else []
        if not found:
            return text
        lines = text.split("\n")
        first, last = found[0][0], found[-1][1]
        return "\n".join(lines[max(0, first - CONTEXT_LINES) : last + 1 + CONTEXT_LINES])


async def second_look(
    verifier: Verifier, ctx: StepContext, judged: Adjudication, critiques: Sequence[Critique]
) -> tuple[Adjudication, list[dict[str, Any]]]:
    """Returns a verdict in which a dismissed CRITICAL issue is pursued if it is confirmed.

    A wrong dismissal of such an issue is the most expensive mistake of a judge: no critic reports
    it again. One that was pursued before and is still there stays pursued. What a human has decided
    is not questioned. Also returns the answers to keep.
    """
    reports = {i.finding_id: (c, i) for c in critiques for i in c.issues if i.finding_id}
    findings = verifier.state.ledger.findings
    to_fix_before = {each for round_ in verifier.state.to_fix for each in round_}
    decisions, notes, answers = list(judged.decisions), list(judged.notes), []
    for number, decision in enumerate(decisions):
        finding, report = findings.get(decision.finding_id), reports.get(decision.finding_id)
        if decision.status is not Pursuit.DISMISSED or decision.severity is not WORST:
            continue
        if finding is None or finding.decision or report is None:
            continue
        reported_again = finding.label is Label.STILL_OPEN and not finding.not_reported_again
        if finding.id in to_fix_before and reported_again:
            why = "it had to be fixed before and is still open"
        else:
            confirmation, new = await verifier.confirm(ctx, *report)
            answers += new
            if not confirmation.confirmed:
                continue
            why = f"it is confirmed by {verifier.config.agent}: {confirmation.reason}"
        decisions[number] = replace(decision, status=Pursuit.PURSUING, rationale=None)
        notes.append(f"{decision.issue_id}: dismissed by the judge, but {why}; it has to be fixed")
    return replace(judged, decisions=tuple(decisions), notes=tuple(notes)), answers
