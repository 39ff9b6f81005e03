"""Judges what critics found: an agent, held to the findings, or the rules alone.

The judge's word is checked. What it approves stands only if nothing that blocks is
still pursued; what it does not mention is pursued.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from signoff.core.checked import Checked, Otherwise
from signoff.core.context import StepContext
from signoff.core.delta import Append
from signoff.core.effects import ProductPrompt
from signoff.core.outcome import Outcome
from signoff.core.requests import RETRY, Choice, Question, Request
from signoff.core.stop_reason import NotConverging
from signoff.flows.flow import Flow
from signoff.flows.state import (
    UNREVIEWED,
    FlowState,
    after,
    critiques_in_scope,
    left_unadjudicated,
    read,
)
from signoff.flows.step import POLICY_JUDGE, StepKind, WorkflowStep
from signoff.flows.steps.ending import (
    Work,
    at_last_round,
    at_limit,
    save_approved,
    save_unapproved,
)
from signoff.flows.steps.updates import keep_answer, keep_warnings, with_best, with_round
from signoff.flows.steps.work_order import bill_of
from signoff.review.adjudication import Adjudication, Verdict
from signoff.review.convergence import find_stop_reason, pursued_in_a_row
from signoff.review.critique import Critique
from signoff.review.findings import Finding, Ledger
from signoff.review.parsing import parse_adjudication
from signoff.review.policy import check_verdict, conflicting_criticals, for_judge, policy_judge
from signoff.review.prompts import adjudicator_prompt

RULES = "rules"
CONTINUE, STOP = "continue", "stop"


@dataclass(frozen=True)
class AdjudicateHandler:
    """The handler of an adjudicate step."""

    flow: Flow
    step: WorkflowStep
    recorded_name: ClassVar[str] = "Judge.__call__"

    @property
    def definition(self) -> list[Any]:
        """What a run depends on; the flow itself is kept with the run."""
        return ["flows", "adjudicate", 1]

    async def __call__(self, ctx: StepContext) -> Work:
        """Decides on the critiques in scope, and whether there is anything left to do."""
        state = FlowState(ctx.step_state)
        critiques = for_judge(read(critiques_in_scope(ctx.step_state, self.step.scope)))
        judged = _noted(
            await self._judge(ctx, state, critiques), _nothing_to_go_by(state, critiques)
        )
        judged = _with_bill(judged, state)
        pursued = sorted({d.finding_id for d in judged.pursued() if d.finding_id})
        ledger = state.ledger.apply(judged)
        update: dict[str, Any] = {
            "last_adjudication": judged.to_json(),
            "unadjudicated_critiques": left_unadjudicated(ctx.step_state, self.step.scope),
            "pursued": Append([{"iteration": ctx.iteration, "findings": pursued}]),
            "findings": ledger.to_json(),
            "rounds": with_round(state, ledger, ctx.iteration),
            "step_index": self.flow.leads_to(self.step),
            "step": {"kind": "adjudicate", "step": self.step.id, "agent": self._agent},
            **keep_warnings(ctx, judged.notes),
        }
        update |= with_best(ctx, after(ctx.step_state, update))
        if judged.status is Verdict.APPROVED:
            return Outcome.OK, update | await self._approved(ctx, after(ctx.step_state, update))
        return await self._go_on(ctx, judged, update)

    @property
    def finishes(self) -> bool:
        """Whether its approval ends the run."""
        if self.step.on_approved is not None:
            return self.step.on_approved == "finish"
        return self.flow.of_kind(StepKind.ADJUDICATE)[-1].id == self.step.id

    async def _approved(self, ctx: StepContext, state: dict[str, Any]) -> dict[str, Any]:
        """Saves the artifact if nothing comes after its approval; returns the update."""
        if self.finishes:
            return await save_approved(ctx, self.flow, state)
        if not (self.flow.starts_round_on_approval(self.step) and at_limit(ctx, self.flow)):
            return {}
        why = f"{ctx.iteration} iterations; approval by {self.step.id!r} does not end the run"
        return await save_unapproved(ctx, self.flow, state, why)

    @property
    def _agent(self) -> str:
        return self.flow.agent(self.step)

    async def _judge(
        self, ctx: StepContext, state: FlowState, critiques: Sequence[Critique]
    ) -> Adjudication:
        block_on = self.flow.config.adjudication.block_on
        if self._agent == POLICY_JUDGE:
            return policy_judge(critiques, iteration=ctx.iteration, block_on=block_on)
        prompt = self._prompt(state, critiques)
        judged = await ctx.ask(
            self._agent,
            prompt,
            key="verdict",
            read=lambda reply: parse_adjudication(reply.text, iteration=ctx.iteration),
            otherwise=Otherwise(self._unreadable, key="unreadable"),
            model=self.step.model,
            timeout=self.step.timeout,
        )
        if judged.value is not None:
            return check_verdict(judged.value, critiques, block_on)
        ruled = policy_judge(critiques, iteration=ctx.iteration, block_on=block_on)
        return _noted(ruled, f"{self._agent}'s answers could not be read; the rules decided")

    def _unreadable(self, last: Checked[Adjudication]) -> Request:
        prompt = (
            f"The judge {self._agent!r} answered twice what cannot be read: "
            f"{'; '.join(last.problems).rstrip('.')}.\n"
            f"{RETRY} asks it again; {RULES} lets the rules decide: everything found is "
            "pursued, and only what blocks keeps the artifact from being approved."
        )
        return Choice(ProductPrompt(prompt), [RETRY, RULES], question_id="adjudication")

    def _prompt(self, state: FlowState, critiques: Sequence[Critique]) -> str:
        config = self.flow.config.adjudication
        return adjudicator_prompt(
            goal=self.flow.goal.text,
            artifact=state.artifact,
            constraints=self.flow.constraints,
            critiques=critiques,
            block_on=config.block_on,
            tensions=[(t.axis, t.guidance, t.winner_on_conflict) for t in config.tensions],
            instructions=config.instructions,
            guidance=state.guidance,
        )

    async def _go_on(self, ctx: StepContext, judged: Adjudication, update: dict[str, Any]) -> Work:
        """Leads on to the next round, unless a rule or a person ends it here."""
        state = FlowState(after(ctx.step_state, update))
        update |= await self._escalations(ctx, judged, state)
        stop = find_stop_reason(
            state.rounds, state.ledger, state.pursued, self.flow.config.convergence
        )
        if stop is not None:
            why = f"not converging ({stop.rule}): {stop.evidence}"
            if await self._ends_here(ctx, why, state.ledger, update):
                ended = await save_unapproved(ctx, self.flow, after(ctx.step_state, update), why)
                reason = NotConverging(stop.rule, stop.evidence)
                return Outcome.FAIL, update | ended | {"_reason": reason}
        if at_last_round(ctx, self.flow, self.step):
            update |= await save_unapproved(ctx, self.flow, after(ctx.step_state, update))
        return Outcome.ITERATE, update

    async def _escalations(
        self, ctx: StepContext, judged: Adjudication, state: FlowState
    ) -> dict[str, Any]:
        config, known = self.flow.config.adjudication, state.ledger.findings
        stuck = pursued_in_a_row(state.pursued, config.thrash_threshold)
        if "thrashing" in config.triggers and stuck:
            prompt = (
                "The same findings come back round after round. How should they be dealt with? "
                "What you write is put before the judge and the author.\n"
                f"{_listed([known[each] for each in stuck if each in known])}"
            )
            answer = await ctx.wait(
                Question(ProductPrompt(prompt), question_id="thrashing"), key="thrashing"
            )
            # Counted anew, or every later round would ask the same again.
            return {**keep_answer(ctx, "thrashing", prompt, answer), "pursued": []}
        conflicts = conflicting_criticals(judged)
        if "conflicting_criticals" in config.triggers and conflicts:
            listed = "\n".join(
                f"- {d.issue_id} ({d.constraint} against {d.competing_constraint})"
                if d.competing_constraint
                else f"- {d.issue_id} ({d.constraint})"
                for d in conflicts
            )
            prompt = f"Critical findings contradict each other. Which should win?\n{listed}"
            answer = await ctx.wait(
                Question(ProductPrompt(prompt), question_id="conflict"), key="conflict"
            )
            return keep_answer(ctx, "conflict", prompt, answer)
        return {}

    async def _ends_here(
        self, ctx: StepContext, why: str, ledger: Ledger, update: dict[str, Any]
    ) -> bool:
        asks = "not_converging" in self.flow.config.adjudication.triggers
        if self.flow.config.convergence.action == "stop" and not asks:
            return True
        request = Choice(
            ProductPrompt(f"Go on all the same? The loop is {why}\n{_listed(ledger.open())}"),
            [CONTINUE, STOP],
            question_id="not_converging",
        )
        answer = await ctx.wait(request, key="not_converging")
        if answer.value == CONTINUE and "human" not in update:
            update |= keep_answer(ctx, "not_converging", why, answer)
            update["pursued"] = []
        return bool(answer.value == STOP)


def _listed(findings: Sequence[Finding]) -> str:
    """Returns findings as a person reads them: an id alone says nothing to who must decide."""
    return "\n".join(
        f"- [{each.severity.value}] {each.id}: {' '.join(each.finding.split())}"
        for each in findings
    )


def _nothing_to_go_by(state: FlowState, critiques: Sequence[Critique]) -> str:
    if critiques:
        return ""
    any_read = any(state.critiques_by_step.values())
    return "no critique was left to judge" if any_read else UNREVIEWED


def _with_bill(judged: Adjudication, state: FlowState) -> Adjudication:
    """Returns a judgement with the work that follows from it, where the judge wrote none."""
    if judged.status is not Verdict.REWRITE or judged.bill_of_work.strip() or not judged.pursued():
        return judged
    now = FlowState({**state.raw, "last_adjudication": judged.to_json()})
    composed = replace(judged, bill_of_work=bill_of(now))
    return _noted(composed, "the judge wrote no bill of work; this one is made of what is pursued")


def _noted(judged: Adjudication, note: str) -> Adjudication:
    return replace(judged, notes=(*judged.notes, note)) if note else judged
