"""Turns a flow into the one graph type.

Each step is a node and leads to the next. The last one, and a refine with `loop_to`,
start the next round. A judge's approval ends the run, or skips the refine step that
follows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

from signoff.core.context import StepContext
from signoff.core.outcome import End, Outcome
from signoff.core.step import Edge, StepDef
from signoff.core.workflow import Workflow
from signoff.flows.flow import Flow
from signoff.flows.model import MOST_ITERATIONS
from signoff.flows.serialize import config_to_json
from signoff.flows.state import FILE_WARNINGS, PREPARED
from signoff.flows.step import FILES_STEP, StepKind, WorkflowStep
from signoff.runtime.amounts import count

_HANDLERS: Mapping[StepKind, str] = {
    StepKind.GENERATE: "GenerateHandler",
    StepKind.CRITIQUE: "CritiqueHandler",
    StepKind.ADJUDICATE: "AdjudicateHandler",
    StepKind.REFINE: "RefineHandler",
    StepKind.SIGN_OFF: "SignOffHandler",
}
"""For each kind its handler, in the module of that kind."""


@dataclass(frozen=True)
class StepHandler:
    """Passes a step on to the handler of its kind.

    That one is imported when the step runs. Checking, drawing and listing flows need none of the
    code that prompts agents and reads what they answer.
    """

    flow: Flow
    step: WorkflowStep

    @property
    def definition(self) -> list[Any]:
        """What a run's digest covers of the handler; the flow itself is stored with the run."""
        # The number is the version of the handlers' behavior. A change of it would make every
        # run under way ask its user to adopt a changed definition.
        return ["flows", self.step.step.value, 1]

    async def __call__(self, ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
        """Performs the step."""
        kind = self.step.step
        module = import_module(f"signoff.flows.steps.{kind.value}")
        handler = getattr(module, _HANDLERS[kind])(self.flow, self.step)
        outcome, update = await handler(ctx)
        if outcome is Outcome.OK and self.flow.ends_with(self.step):
            from signoff.flows.files.skipping import file_coverage
            from signoff.review.coverage import describe_missed

            if missed := file_coverage(ctx.step_state.get("skipped") or {}).missed:
                # What passed is the result all the same; only the run must not look complete.
                return Outcome.SKIP, {**update, "_reason": "; ".join(describe_missed(missed))}
        return outcome, {**update, **self._question_at_limit(ctx, outcome, update)}

    def _question_at_limit(
        self, ctx: StepContext, outcome: Outcome, update: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Returns the reason for the end, or for the question, if there may be no more rounds.

        The engine uses it only then; how many rounds there may be is not known here.
        """
        from signoff.flows.state import FlowState, after
        from signoff.flows.steps.updates import at_limit_reason
        from signoff.flows.steps.work_order import unchanged_before

        not_passed = Outcome.ITERATE if self.step.step is StepKind.ADJUDICATE else Outcome.OK
        if outcome is not not_passed or not self.flow.starts_round(self.step):
            return {}
        state = FlowState(after(ctx.step_state, update))
        asks = "max_iterations" in self.flow.config.adjudication.triggers
        unchanged = unchanged_before(state)
        if not (asks or unchanged):
            # The engine's own words say as much.
            return {}
        why = update.get("_reason") or f"{count(ctx.iteration, 'round')} without passing"
        if unchanged:
            why = f"{why}; the last fix changed nothing"
        block_on = self.flow.config.adjudication.block_on
        return {"_reason": at_limit_reason(str(why), state.ledger, block_on) if asks else why}


@dataclass(frozen=True)
class FilesHandler:
    """Takes the files that were read before the run started as the artifact."""

    flow: Flow
    definition = ("flows", FILES_STEP, 1)

    async def __call__(self, ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
        """Stores the files, and gathers the material that they are compared with."""
        from signoff.flows.steps.material import gather
        from signoff.flows.steps.updates import report_warnings

        params = ctx.workflow_params
        update = {name: params[name] for name in PREPARED if params.get(name) not in (None, {}, [])}
        if decisions := update.pop("decisions", None):
            # What was dismissed in earlier runs is dismissed in this one, too.
            update["findings"] = {"round": 0, "entries": decisions}
        record = {"kind": FILES_STEP, "step": FILES_STEP}
        update |= report_warnings(ctx, params.get(FILE_WARNINGS, ()))
        return Outcome.OK, {**update, "sources": await gather(ctx, self.flow), "step": record}


def compile_flow(flow: Flow, name: str, warnings: Sequence[str] = ()) -> Workflow:
    """Returns the workflow of a flow; its source is everything that it depends on."""
    config = flow.config
    first = []
    if config.artifact is not None:
        handler, to = FilesHandler(flow), config.workflow[0].id
        first = [StepDef(FILES_STEP, title="read files", handler=handler, next={Outcome.OK: to})]
    return Workflow(
        name,
        *first,
        *(_node(flow, index, step) for index, step in enumerate(config.workflow)),
        description=config.description,
        limits=config.limits,
        max_iterations=config.max_iterations,
        notation="flows",
        source=frozen_source(flow),
        warnings=tuple(warnings),
        inputs=(),
        prepare=partial(_read_files, flow) if config.artifact is not None else None,
    )


def _read_files(flow: Flow, _params: Mapping[str, Any]) -> Mapping[str, Any]:
    # Only runs need git and the files; checking and drawing a flow does not.
    from signoff.flows.files.prepared import read_files

    return read_files(flow)


def frozen_source(flow: Flow) -> dict[str, Any]:
    """Returns a flow as plain data, as it is stored with every run of it."""
    goal = {"goal": flow.goal.text, "source": flow.goal.source.to_json()}
    return {
        "flow": config_to_json(flow.config),
        "goal": {key: value for key, value in goal.items() if value},
        "constraints": [constraint.to_json() for constraint in flow.constraints],
        "prompts": dict(flow.prompts),
        "given": dict(flow.options),
    }


def _node(flow: Flow, index: int, step: WorkflowStep) -> StepDef:
    return StepDef(
        step.id,
        title=_title(flow, step),
        handler=StepHandler(flow, step),
        next=_edges(flow, index, step),
        phase=step.step.value,
    )


def _title(flow: Flow, step: WorkflowStep) -> str:
    asks_one = step.step not in (StepKind.CRITIQUE, StepKind.SIGN_OFF)
    agent = step.agent or (flow.default_agent if asks_one else "")
    parts = [step.step.value, *([f"by {agent}"] if agent else [])]
    if step.model:
        parts.append(f"({step.model})")
    if step.constraints:
        parts.append(f"of {', '.join(step.constraints)}")
    return " ".join(parts)


def _edges(flow: Flow, index: int, step: WorkflowStep) -> dict[Outcome, str | End | Edge | None]:
    edges = _passing_edges(flow, index, step)
    if flow.config.artifact is not None and flow.ends_with(step):
        edges[Outcome.SKIP] = End.INCOMPLETE
    return edges


def _passing_edges(
    flow: Flow, index: int, step: WorkflowStep
) -> dict[Outcome, str | End | Edge | None]:
    if step.step is StepKind.SIGN_OFF:
        return _sign_off_edges(flow, index, step)
    onward = _round(flow, step.loop_to) if step.loop_to is not None else _next(flow, index)
    if step.step is StepKind.ADJUDICATE:
        passed = flow.index(flow.passed_on_approval(step))
        approved = None if flow.ends_with(step) else _next(flow, passed)
        # If nothing fixes what was found, another round would find the same.
        not_passed = onward if flow.changes_artifact else End.FINDINGS
        return {
            Outcome.OK: approved,
            Outcome.ITERATE: not_passed,
            Outcome.FAIL: End.NOT_CONVERGING,
        }
    edges: dict[Outcome, str | End | Edge | None] = {Outcome.OK: onward}
    if not flow.of_kind(StepKind.ADJUDICATE):
        # Every graph needs an end. Without a judge, a run ends at its limit of rounds.
        edges[Outcome.FAIL] = End.LIMIT
    if step.step is StepKind.CRITIQUE and flow.escalates:
        # A human is asked in a second visit of the step, once for each review. The count starts
        # again when the step is left, except where leaving it starts a round.
        bound = MOST_ITERATIONS if flow.starts_round(step) else 1
        edges[Outcome.ITERATE] = Edge(step.id, bound=bound, resets=True)
    return edges


def _sign_off_edges(
    flow: Flow, index: int, step: WorkflowStep
) -> dict[Outcome, str | End | Edge | None]:
    fixer = flow.fixes_requests_of(step)
    edges: dict[Outcome, str | End | Edge | None] = {
        Outcome.OK: None if flow.ends_with(step) else _next(flow, index),
        Outcome.FAIL: End.REJECTED,
    }
    if fixer is not None:
        # A refine step that loops starts the next round itself.
        again = _round(flow, fixer.id) if fixer.loop_to is None else Edge(fixer.id)
        # The round that a human asks for must not be the one that the limit cuts off. The human
        # decides each time, so this bound is only there to have one.
        edges[Outcome.ITERATE] = replace(
            again, grants_iteration=True, bound=MOST_ITERATIONS, on_limit="ask"
        )
    return edges


def _next(flow: Flow, index: int) -> str | Edge:
    steps = flow.config.workflow
    return steps[index + 1].id if index + 1 < len(steps) else _round(flow, steps[0].id)


def _round(flow: Flow, to: str) -> Edge:
    # Who signs off also decides about more rounds: a request must not end with an unread fix.
    signs_off = bool(flow.of_kind(StepKind.SIGN_OFF))
    asks = "max_iterations" in flow.config.adjudication.triggers or signs_off
    return Edge(to, starts_iteration=True, on_limit="ask" if asks else "end")
