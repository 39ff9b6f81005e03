"""Compiles a flow file: the flow, its goal and its constraints, checked together."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from signoff.agents.kinds import AUTO, DEFAULT_AGENT, PROGRAMS
from signoff.core.workflow import Workflow
from signoff.documents.source_file import SourceFile
from signoff.errors import InvalidWorkflow, Problem
from signoff.flows.compile import compile_flow
from signoff.flows.flow import Flow
from signoff.flows.reading import ReadFlow, read_flow
from signoff.flows.sections import Goal
from signoff.flows.step import StepKind, WorkflowStep
from signoff.flows.warnings import source_problems, source_warnings
from signoff.notation import CompileContext
from signoff.remedies import PassOption

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
    if CHOSEN in context.options and not _names_critics(file):
        read = _with_critic(read, context.options[CHOSEN])
    flow = _flow(read, context)
    name = read.config.name or file.path.stem
    problems = list(_problems(read, flow, file.path.name, check_only=context.check_only))
    if not context.resumes:
        # A run that was started has recorded its sources.
        remedy = "fix the path, or take it out"
        problems += [Problem(file.path.name, each, remedy) for each in source_problems(flow)]
    if problems:
        goal_file = () if read.goal is not None else PassOption("goal", "FILE")
        raise InvalidWorkflow(name, problems, remedy=goal_file)
    return compile_flow(flow, name, [*read.warnings, *_warnings(flow, context.without_key)])


def _flow(read: ReadFlow, context: CompileContext) -> Flow:
    return Flow(
        config=read.config,
        goal=read.goal or NO_GOAL,
        constraints=read.constraints,
        prompts=read.prompts,
        root=context.root,
        home=context.home,
        default_agent=_default_agent(context),
        installed=tuple(context.installed or PROGRAMS),
        agents=context.agents,
        allow_scripts=bool(context.options.get("allow_scripts")) or read.config.allow_scripts,
        options=context.stored,
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


def _problems(read: ReadFlow, flow: Flow, name: str, *, check_only: bool) -> Iterator[Problem]:
    if read.goal is None and not check_only and flow.config.artifact is None:
        yield Problem(name, "there is no goal", "name a goal file, or add goal: to the flow")


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
