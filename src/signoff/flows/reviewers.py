"""Who reviews what in a flow."""

from __future__ import annotations

from signoff.flows.flow import Flow
from signoff.flows.routing import select_reviewers
from signoff.flows.selection import resolve_constraints_for_step
from signoff.flows.step import StepKind, WorkflowStep
from signoff.review.constraint import Constraint


def reviewers_of(flow: Flow, step: WorkflowStep, constraint: Constraint) -> tuple[str, ...]:
    """Returns the agents that read the artifact against a constraint in a step."""
    return routed(flow, step, constraint)[0]


def routed(flow: Flow, step: WorkflowStep, constraint: Constraint) -> tuple[tuple[str, ...], str]:
    """Returns them with what decided it.

    Of several, a built-in one that is not installed is left out; a constraint nobody could
    read keeps its critics, and the run says what is missing.
    """
    agents, why = select_reviewers(
        step.agent, constraint, flow.config.constraints.routing, (flow.default_agent,)
    )
    here = tuple(agent for agent in agents if not flow.is_missing(agent))
    return here or agents, why


def missing_agents(flow: Flow, step: WorkflowStep) -> dict[str, list[str]]:
    """Returns the agents that were left out, with the constraints they were to read."""
    left_out: dict[str, list[str]] = {}
    for constraint in resolve_constraints_for_step(step, flow.constraints):
        agents, _why = select_reviewers(
            step.agent, constraint, flow.config.constraints.routing, (flow.default_agent,)
        )
        for agent in agents:
            if agent not in reviewers_of(flow, step, constraint):
                left_out.setdefault(agent, []).append(constraint.id)
    return left_out


def absent_agents(flow: Flow) -> dict[str, list[str]]:
    """Returns the built-in agents that steps need and that are not here, with those steps."""
    absent: dict[str, list[str]] = {}
    for step in flow.config.workflow:
        for agent in _workers(flow, step):
            if flow.is_missing(agent):
                absent.setdefault(agent, []).append(step.id)
    return absent


def _workers(flow: Flow, step: WorkflowStep) -> set[str]:
    if step.step is not StepKind.CRITIQUE:
        return {flow.agent(step)}
    chosen = resolve_constraints_for_step(step, flow.constraints)
    return {agent for each in chosen for agent in reviewers_of(flow, step, each)}
