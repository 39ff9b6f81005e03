"""Writes the artifact: from the goal at first, and from the last judgement afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.errors import AgentBadOutput
from signoff.flows.flow import Flow
from signoff.flows.state import NOTHING_REVIEWED, FlowState, after
from signoff.flows.step import StepKind, WorkflowStep
from signoff.flows.steps.ending import Work, at_last_round, save_unapproved
from signoff.flows.steps.material import gather
from signoff.flows.steps.updates import keep_warnings
from signoff.flows.warnings import independence_warnings
from signoff.review.prompts import brief_prompt, generator_prompt
from signoff.runtime.environment import hidden_in

MOST_CHARACTERS = 8_000_000
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
        update: dict[str, Any] = {}
        if sources is None:
            sources = await gather(ctx, self.flow)
            update |= keep_warnings(ctx, independence_warnings(self.flow))
        agent = self.flow.agent(self.step)
        judged = state.adjudication
        prompt = author_prompt(
            self.flow,
            self.step,
            sources=sources.get("", ""),
            previous=state.artifact,
            bill_of_work=judged.bill_of_work if judged else "",
            guidance=[*state.guidance, *([ctx.feedback] if ctx.feedback else [])],
            iteration=ctx.iteration,
        )
        reply = await ctx.ask(
            agent, prompt, key="draft", model=self.step.model, timeout=self.step.timeout
        )
        artifact = checked_artifact(reply.text)
        update |= {
            **NOTHING_REVIEWED,
            "artifact": artifact,
            "artifact_path": self._path(ctx.iteration),
            "sources": sources,
            "step_index": self.flow.leads_to(self.step),
            "step": {"kind": "generate", "step": self.step.id, "agent": agent},
        }
        if at_last_round(ctx, self.flow, self.step):
            update |= await save_unapproved(ctx, self.flow, after(ctx.step_state, update))
        return Outcome.OK, update

    def _path(self, iteration: int) -> str:
        first = self.flow.of_kind(StepKind.GENERATE)[0]
        tail = "" if self.step.id == first.id else f"_{self.step.id}"
        return f"iterations/{iteration}/artifact{tail}.md"


def author_prompt(
    flow: Flow,
    step: WorkflowStep,
    *,
    sources: str,
    previous: str = "",
    bill_of_work: str = "",
    guidance: Sequence[str] = (),
    iteration: int = 1,
) -> str:
    """Returns what whoever writes the whole text is told, as briefly as the step wants it."""
    goal = flow.goal.text
    if step.prompt == "brief":
        return brief_prompt(
            goal=goal, sources=sources, bill_of_work=bill_of_work, guidance=guidance
        )
    return generator_prompt(
        goal=goal,
        sources=sources,
        constraints=flow.constraints,
        previous=previous,
        bill_of_work=bill_of_work,
        guidance=guidance,
        iteration=iteration,
    )


def checked_artifact(text: str) -> str:
    """Returns an agent's text as an artifact; one that is none raises `AgentBadOutput`."""
    if not text.strip():
        raise AgentBadOutput("the answer is empty; answer with the whole text and nothing else")
    if len(text) > MOST_CHARACTERS:
        raise AgentBadOutput(f"the answer has {len(text):,} characters; that cannot be meant")
    if variable := hidden_in(text):
        raise AgentBadOutput(
            f"artifact.md contained the value of {variable}; write it without that value"
        )
    whole = _whole_characters(text)
    return whole if whole.endswith("\n") else f"{whole}\n"


def _whole_characters(text: str) -> str:
    """Returns a text that a file can hold: halves of a character are joined, or marked as lost."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
