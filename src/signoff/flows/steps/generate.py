"""Writes the artifact: from the goal at first, and from the last judgement afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.errors import AgentBadOutput
from signoff.flows.flow import Flow
from signoff.flows.model import StepKind, WorkflowStep
from signoff.flows.state import NOTHING_REVIEWED, FlowState, after
from signoff.flows.steps.ending import Work, at_last_round, save_unapproved
from signoff.flows.steps.material import gather
from signoff.review.constraint import compress_constraints
from signoff.review.prompts import generator_prompt

MOST_BYTES = 5_000_000
"""An artifact larger than this is taken for a fault of the agent."""


@dataclass(frozen=True)
class Generate:
    """The handler of a generate step."""

    flow: Flow
    step: WorkflowStep

    @property
    def definition(self) -> list[Any]:
        """What a run depends on; the flow itself is kept with the run."""
        return ["flows", "generate", 1]

    async def __call__(self, ctx: StepContext) -> Work:
        """Asks for the artifact; all reviews of an earlier one are put aside."""
        state = FlowState(ctx.step_state)
        sources = ctx.step_state.get("sources")
        if sources is None:
            sources = await gather(ctx, self.flow)
        agent = self.flow.agent(self.step)
        judged = state.adjudication
        prompt = generator_prompt(
            goal=self.flow.goal.text,
            sources=sources.get("", ""),
            constraints=compress_constraints(self.flow.constraints),
            previous=state.artifact,
            bill_of_work=judged.bill_of_work if judged else "",
            guidance=[*state.guidance, *([ctx.feedback] if ctx.feedback else [])],
            iteration=ctx.iteration,
        )
        reply = await ctx.ask(
            agent, prompt, key="draft", model=self.step.model, timeout=self.step.timeout
        )
        artifact = checked_artifact(reply.text)
        update = {
            **NOTHING_REVIEWED,
            "artifact": artifact,
            "artifact_path": self._path(ctx.iteration),
            "sources": sources,
            "step_index": self.flow.index(self.step),
            "step": {"kind": "generate", "step": self.step.id, "agent": agent},
        }
        if at_last_round(ctx, self.flow, self.step):
            update |= await save_unapproved(ctx, self.flow, after(ctx.step_state, update))
        return Outcome.OK, update

    def _path(self, iteration: int) -> str:
        first = self.flow.of_kind(StepKind.GENERATE)[0]
        tail = "" if self.step.id == first.id else f"_{self.step.id}"
        return f"iterations/{iteration}/artifact{tail}.md"


def checked_artifact(text: str) -> str:
    """Returns an agent's text as an artifact; one that is none raises `AgentBadOutput`."""
    if not text.strip():
        raise AgentBadOutput("the answer is empty; answer with the whole text and nothing else")
    if len(text) > MOST_BYTES:
        raise AgentBadOutput(f"the answer has {len(text):,} characters; that cannot be meant")
    return text if text.endswith("\n") else f"{text}\n"
