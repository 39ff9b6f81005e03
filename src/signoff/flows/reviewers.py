"""Who reviews what in a flow."""

from __future__ import annotations

from signoff.flows.flow import BUILT_IN_AGENTS, Flow
from signoff.flows.model import WorkflowStep
from signoff.review.constraint import Constraint
from signoff.review.routing import reviewers


def reviewers_of(flow: Flow, step: WorkflowStep, constraint: Constraint) -> tuple[str, ...]:
    """Returns the agents that read the artifact against a constraint in a step."""
    return routed(flow, step, constraint)[0]


def routed(flow: Flow, step: WorkflowStep, constraint: Constraint) -> tuple[tuple[str, ...], str]:
    """Returns them with what decided it."""
    agents, why = reviewers(
        step.agent, constraint, flow.config.constraints.routing, (flow.default_agent,)
    )
    # A built-in agent that is not installed cannot be asked; any other is the settings' matter.
    here = tuple(a for a in agents if a not in BUILT_IN_AGENTS or a in flow.found)
    return here or agents, why
