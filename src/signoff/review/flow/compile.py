"""Turns a flow file, or a flow, into the one graph type.

Each step is a node and leads to the next. The last one, and a refine with `loop_to`,
start the next round. A judge's approval ends the run, or skips the refine step that
follows it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from signoff.agents.kinds import AUTO, DEFAULT_AGENT, PROGRAMS
from signoff.core.context import StepContext
from signoff.core.errors import InvalidWorkflow, Problem
from signoff.core.outcome import End, Outcome
from signoff.core.remedies import PassOption
from signoff.core.step import Edge, StepDef
from signoff.core.workflow import Workflow
from signoff.documents.source_file import SourceFile
from signoff.notation import CompileContext
from signoff.review.flow.files.selection import read_files
from signoff.review.flow.model import (
    FILES_STEP,
    MOST_ITERATIONS,
    Flow,
    StepKind,
    WorkflowStep,
    config_to_json,
)
from signoff.review.flow.reading import ReadFlow, read_flow
from signoff.review.flow.sections import Goal
from signoff.review.flow.state import FILE_WARNINGS, PREPARED, report_warnings
from signoff.review.flow.steps.adjudicate import AdjudicateHandler
from signoff.review.flow.steps.authors import GenerateHandler, RefineHandler
from signoff.review.flow.steps.critique import CritiqueHandler
from signoff.review.flow.steps.handler import FlowHandler
from signoff.review.flow.steps.material import gather
from signoff.review.flow.steps.sign_off import SignOffHandler
from signoff.review.flow.validation import source_problems, source_warnings

CHOSEN = "agent"
"""The option with the agent that the user wants where the flow names none."""
NO_GOAL = Goal.model_construct(goal="")
"""A placeholder while a flow is only checked; without a goal, a run is refused."""


def compile_file(file: SourceFile, context: CompileContext) -> Workflow:
    """Returns the workflow a flow file describes; raises `InvalidWorkflow` with every problem."""
    root = context.root
    goal = root / context.options["goal"] if context.options.get("goal") else None
    read = read_flow(
        file,
        root=root,
        home=context.home,
        goal=goal,
        known=context.agent_names,
        # The current agents must not affect a run that has already started.
        agents=None if context.resumes else context.agents,
        default_agent=_default_agent(context),
    )
    # The fixed loop has three critics of its own. A user who names one agent means that one, and
    # has perhaps no key for the others.
    if CHOSEN in context.options and not _names_critics(file):
        read = _with_critic(read, context.options[CHOSEN])
    flow = flow_in(
        context,
        config=read.config,
        goal=read.goal or NO_GOAL,
        constraints=read.constraints,
        prompts=read.prompts,
        default_agent=_default_agent(context),
        allow_scripts=bool(context.options.get("allow_scripts")) or read.config.allow_scripts,
    )
    name = read.config.name or file.path.stem
    problems = list[Problem]()
    if read.goal is None and not context.check_only and flow.config.artifact is None:
        remedy = "name a goal file, or add goal: to the flow"
        problems.append(Problem(file.path.name, "there is no goal", remedy))
    if not context.resumes:
        # A run that was started has recorded its sources.
        remedy = "fix the path, or take it out"
        problems += [Problem(file.path.name, each, remedy) for each in source_problems(flow)]
    if problems:
        goal_file = () if read.goal is not None else PassOption("goal", "FILE")
        raise InvalidWorkflow(name, problems, remedy=goal_file)
    return compile_flow(flow, name, [*read.warnings, *_warnings(flow, context.without_key)])


def flow_in(context: CompileContext, **own: Any) -> Flow:
    """Returns a flow with what it gets from the project; `own` are its other fields."""
    return Flow(
        root=context.root,
        home=context.home,
        installed=tuple(context.installed or PROGRAMS),
        agents=context.agents,
        options=context.stored,
        **own,
    )


def _default_agent(context: CompileContext) -> str:
    """Returns the agent of what names none: the user's choice, or the machine's default."""
    return context.options.get(CHOSEN) or context.default_agent or DEFAULT_AGENT


def _names_critics(file: SourceFile) -> bool:
    """Whether critics without a name are not the three of the fixed loop."""
    content = file.content if isinstance(file.content, dict) else {}
    routing = (content.get("constraints") or {}).get("routing") or {}
    return "workflow" in content or "default_agents" in routing


def _with_critic(read: ReadFlow, agent: str) -> ReadFlow:
    """Returns a flow that asks one agent about the constraints that name none."""
    constraints = read.config.constraints
    routing = constraints.routing.model_copy(update={"default_agents": (agent,)})
    update = {"constraints": constraints.model_copy(update={"routing": routing})}
    return replace(read, config=read.config.model_copy(update=update))


def _warnings(flow: Flow, without_key: Collection[str]) -> Iterator[str]:
    if flow.goal is NO_GOAL and flow.config.artifact is None:
        yield "there is no goal yet; a run needs one: the option `goal`, or goal: in the flow"
    yield from source_warnings(flow)
    steps, default = flow.config.workflow, flow.default_agent
    unnamed = [step for step in steps if step.agent is None]
    if default == AUTO and any(default in flow.agents_of(step) for step in unnamed):
        yield f"{DEFAULT_AGENT} is not on PATH: steps that name no agent use `{default}`"
    agents = dict.fromkeys(agent for step in steps for agent in flow.agents_of(step))
    for agent in filter(flow.is_missing, agents):
        ids = [step.id for step in steps if agent in flow.agents_of(step)]
        yield f"{agent} is not on PATH; needed by: {', '.join(ids)}"
    for agent in agents:
        if agent in without_key:
            yield f"the key of {agent} is not set, and a run asks it"
    for step in flow.of_kind(StepKind.CRITIQUE):
        yield from _left_out(flow, step)


def _left_out(flow: Flow, step: WorkflowStep) -> Iterator[str]:
    """Yields agents that are not installed, where other agents review in their place."""
    left_out: dict[str, list[str]] = {}
    for constraint in flow.selected(step):
        named, _rule = flow.routing(step, constraint)
        for agent in named:
            if agent not in flow.reviewers(step, constraint):
                left_out.setdefault(agent, []).append(constraint.id)
    for agent, constraints in left_out.items():
        yield f"{agent} is not installed and reviews nothing of: {', '.join(constraints)}"


_HANDLERS: Mapping[StepKind, type[FlowHandler]] = {
    StepKind.GENERATE: GenerateHandler,
    StepKind.CRITIQUE: CritiqueHandler,
    StepKind.ADJUDICATE: AdjudicateHandler,
    StepKind.REFINE: RefineHandler,
    StepKind.SIGN_OFF: SignOffHandler,
}


@dataclass(frozen=True)
class FilesHandler:
    """Takes the files that were read before the run started as the artifact."""

    flow: Flow
    definition = ("flows", FILES_STEP, 1)

    async def __call__(self, ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
        """Stores the files, and gathers the material that they are compared with."""
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
        # The step that reads the files is not listed in the flow's file, so it is added here, in
        # front of the author's own steps.
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
        prepare=partial(read_files, flow) if config.artifact is not None else None,
    )


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
        handler=_HANDLERS[step.step](flow, step),
        next=_edges(flow, index, step),
        phase=step.step.value,
    )


def _title(flow: Flow, step: WorkflowStep) -> str:
    asks_one = step.step not in (StepKind.CRITIQUE, StepKind.SIGN_OFF)
    agent = step.agent or (flow.default_agent if asks_one else "")
    # The agents of critics come from the routing, and a human signs off, so neither has one agent
    # to name here.
    parts = [step.step.value, *([f"by {agent}"] if agent else [])]
    if step.model:
        parts.append(f"({step.model})")
    if step.constraints:
        parts.append(f"of {', '.join(step.constraints)}")
    return " ".join(parts)


def _edges(flow: Flow, index: int, step: WorkflowStep) -> dict[Outcome, str | End | Edge | None]:
    edges = _passing_edges(flow, index, step)
    if flow.config.artifact is not None and flow.ends_with(step):
        # A text can pass although a file was not read. The run then ends with its result, but must
        # not look like a complete review.
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
