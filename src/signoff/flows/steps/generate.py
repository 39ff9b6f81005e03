"""Writes the artifact: the first version from the goal, later ones from the last verdict too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from signoff.core.context import StepContext
from signoff.core.effects import ProductPrompt
from signoff.core.outcome import Outcome
from signoff.errors import AgentBadOutput
from signoff.flows.flow import Flow
from signoff.flows.model import WorkflowStep
from signoff.flows.state import NOTHING_REVIEWED, FlowState
from signoff.flows.steps.handler import FlowHandler, StepResult
from signoff.flows.steps.material import gather
from signoff.flows.steps.work_order import (
    already_applied,
    approved_sections,
    carried_out,
    findings_to_fix,
)
from signoff.review.critique import is_critique
from signoff.review.prompts import brief_prompt, generator_prompt
from signoff.runtime.environment import hidden_in

MOST_CHARACTERS = 8_000_000
"""A longer artifact is treated as an error of the agent."""


@dataclass(frozen=True)
class GenerateHandler(FlowHandler):
    """The handler of a generate step."""

    async def perform(self, ctx: StepContext) -> StepResult:
        """Asks for the artifact and discards all reviews of an earlier one."""
        state = FlowState(ctx.step_state)
        sources = ctx.step_state.get("sources")
        update: dict[str, Any] = {}
        if sources is None:
            sources = await gather(ctx, self.flow)
        gathered = FlowState({**state.raw, "sources": sources})
        prompt = draft_prompt(self.flow, self.step, gathered, ctx.iteration, ctx.feedback)
        reply = await ctx.ask(self.agent, prompt, key="draft", **self.call_options)
        update |= {
            # A new text has no reviews: findings of the old one stay in the ledger, but its
            # critiques must not reach a judge of this one.
            **NOTHING_REVIEWED,
            "artifact": checked_artifact(reply.text),
            "artifact_path": self.artifact_path("artifact", ctx.iteration),
            "sources": sources,
            **self.record(agent=self.agent),
            **(carried_out(state, changed=True) if state.adjudication else {}),
        }
        return Outcome.OK, update


def draft_prompt(
    flow: Flow, step: WorkflowStep, state: FlowState, iteration: int, feedback: str | None = None
) -> ProductPrompt:
    """Returns the prompt of a generate step."""
    verdict = state.adjudication
    bill = verdict.bill_of_work if verdict else ""
    return author_prompt(flow, step, state, state.artifact, bill, iteration, feedback)


def author_prompt(
    flow: Flow,
    step: WorkflowStep,
    state: FlowState,
    previous: str,
    bill_of_work: str,
    iteration: int,
    feedback: str | None = None,
) -> ProductPrompt:
    """Returns the prompt for an agent that writes the whole text, full or brief."""
    if step.prompt == "brief":
        return brief_prompt(
            goal=flow.goal.text,
            sources=state.source(),
            bill_of_work=bill_of_work,
            guidance=state.guidance,
            feedback=feedback or "",
            templates=flow.prompts,
        )
    done = already_applied(state)
    return generator_prompt(
        goal=flow.goal.text,
        sources=state.source(),
        constraints=flow.constraints,
        previous=previous,
        bill_of_work=bill_of_work,
        guidance=state.guidance,
        feedback=feedback or "",
        iteration=iteration,
        already_applied=done,
        findings=() if done else findings_to_fix(state, flow.by_id, bill_of_work),
        approved=approved_sections(state),
        templates=flow.prompts,
    )


def checked_artifact(text: str, before: str = "") -> str:
    """Returns an agent's text as an artifact; raises `AgentBadOutput` if it cannot be one.

    `before` is the text that it replaces.
    """
    if not text.strip():
        raise AgentBadOutput("the answer is empty; answer with the whole text and nothing else")
    if len(text) > MOST_CHARACTERS:
        raise AgentBadOutput(
            f"the answer has {len(text):,} characters; at most {MOST_CHARACTERS:,} are accepted"
        )
    # Seen with small models: asked to fix a text, they answer with a review of it, which would
    # replace the text.
    if is_critique(text) and not is_critique(before):
        raise AgentBadOutput("the answer is a critique, not the text; answer with the whole text")
    if variable := hidden_in(text):
        raise AgentBadOutput(
            f"artifact.md contained the value of {variable}; write it without that value"
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair fits into no file: halves are joined, or marked as lost.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text if text.endswith("\n") else f"{text}\n"
