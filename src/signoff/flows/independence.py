"""Whether a flow's critics are of another model family than its author."""

from __future__ import annotations

from collections.abc import Iterator

from signoff.agents.base import KnownAgent
from signoff.flows.flow import Flow
from signoff.flows.reviewers import reviewers_of
from signoff.flows.selection import resolve_constraints_for_step
from signoff.flows.step import StepKind, WorkflowStep
from signoff.review.families import ModelUse, Relatives, find_relatives


def relatives(flow: Flow) -> Relatives:
    """Returns which critics share the author's family, or may share it."""
    author = flow.of_kind(StepKind.GENERATE)[0]
    critics = {
        agent: _who(flow, agent, step)
        for step in flow.of_kind(StepKind.CRITIQUE)
        for constraint in resolve_constraints_for_step(step, flow.constraints)
        for agent in reviewers_of(flow, step, constraint)
    }
    return find_relatives(_who(flow, flow.agent(author), author), critics)


def dependence(flow: Flow) -> Iterator[str]:
    """Yields why critics are not independent, where the flow wants them to be."""
    if flow.config.independence.rule != "different_family":
        return
    found = relatives(flow)
    if not found.independent:
        yield f"independence could not be kept: {found}"


def _who(flow: Flow, agent: str, step: WorkflowStep) -> ModelUse:
    known = flow.agents.get(agent) or KnownAgent(agent)
    return ModelUse(known.kind, step.model or known.model, known.capabilities)
