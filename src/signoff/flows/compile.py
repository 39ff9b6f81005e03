"""Turns a flow into the one graph type.

Each step is a node and leads to the next. The last one, and a refine with `loop_to`,
begin the next iteration. A judge's approval ends the run, or passes over the refine
that follows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from signoff.core.outcome import End, Outcome
from signoff.core.step import Edge, StepDef
from signoff.core.workflow import Workflow
from signoff.flows.flow import Flow
from signoff.flows.model import MOST_ITERATIONS
from signoff.flows.reading import config_to_json
from signoff.flows.step import StepKind, WorkflowStep
from signoff.flows.steps.adjudicate import AdjudicateHandler
from signoff.flows.steps.critique import Critics
from signoff.flows.steps.generate import Generate
from signoff.flows.steps.refine import Refine

_HANDLERS: Mapping[StepKind, Callable[[Flow, WorkflowStep], Any]] = {
    StepKind.GENERATE: Generate,
    StepKind.CRITIQUE: Critics,
    StepKind.ADJUDICATE: AdjudicateHandler,
    StepKind.REFINE: Refine,
}


def compile_flow(flow: Flow, name: str, remarks: Sequence[str] = ()) -> Workflow:
    """Returns the workflow of a flow, with everything it depends on kept inside."""
    config = flow.config
    return Workflow(
        name,
        *(_node(flow, index, step) for index, step in enumerate(config.workflow)),
        description=config.description,
        limits=config.limits,
        max_iterations=config.max_iterations,
        notation="flows",
        source=frozen_source(flow),
        warnings=tuple(remarks),
        inputs=(),
    )


def frozen_source(flow: Flow) -> dict[str, Any]:
    """Returns a flow as plain data: what is kept with every run of it."""
    goal = {"goal": flow.goal.text, "source": flow.goal.source.to_json()}
    return {
        "flow": config_to_json(flow.config),
        "goal": {key: value for key, value in goal.items() if value},
        "constraints": [constraint.to_json() for constraint in flow.constraints],
        "given": dict(flow.given),
    }


def _node(flow: Flow, index: int, step: WorkflowStep) -> StepDef:
    handler = _HANDLERS[step.step](flow, step)
    return StepDef(
        step.id,
        title=_title(flow, step),
        handler=handler,
        next=_edges(flow, index, handler),
        phase=step.step.value,
    )


def _title(flow: Flow, step: WorkflowStep) -> str:
    agent = step.agent or ("" if step.step is StepKind.CRITIQUE else flow.default_agent)
    parts = [step.step.value, *([f"by {agent}"] if agent else [])]
    if step.model:
        parts.append(f"({step.model})")
    if step.constraints:
        parts.append(f"of {', '.join(step.constraints)}")
    return " ".join(parts)


def _edges(flow: Flow, index: int, handler: Any) -> dict[Outcome, str | End | Edge | None]:
    step: WorkflowStep = handler.step
    onward = _onward(flow, index)
    if step.step is not StepKind.ADJUDICATE:
        # Every graph has an end; where nothing judges, it is the limit on rounds that ends a run.
        edges: dict[Outcome, str | End | Edge | None] = {Outcome.OK: onward}
        if not flow.of_kind(StepKind.ADJUDICATE):
            edges[Outcome.FAIL] = End.LIMIT
        if step.step is StepKind.CRITIQUE and flow.escalates:
            # Once for every review: what a person is asked has a visit of its own. The count
            # starts anew when the step is left, unless that begins a round.
            bound = MOST_ITERATIONS if flow.starts_round(step) else 1
            edges[Outcome.ITERATE] = Edge(step.id, bound=bound, resets=True)
        return edges
    passed = flow.index(flow.passed_on_approval(step))
    approved = None if handler.finishes else _next_after(flow, passed)
    return {Outcome.OK: approved, Outcome.ITERATE: onward, Outcome.FAIL: End.NOT_CONVERGING}


def _onward(flow: Flow, index: int) -> str | Edge:
    target = flow.config.workflow[index].loop_to
    return _round(flow, target) if target is not None else _next_after(flow, index)


def _next_after(flow: Flow, index: int) -> str | Edge:
    steps = flow.config.workflow
    return steps[index + 1].id if index + 1 < len(steps) else _round(flow, steps[0].id)


def _round(flow: Flow, to: str) -> Edge:
    asks = "max_iterations" in flow.config.adjudication.triggers
    return Edge(to, starts_iteration=True, on_limit="ask" if asks else "end")
