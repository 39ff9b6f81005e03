"""Compiles a flow file: the flow, its goal and its constraints, checked together."""

from __future__ import annotations

from collections.abc import Iterator

from signoff.agents.kinds import DEFAULT_AGENT, PROGRAMS
from signoff.core.workflow import Workflow
from signoff.documents.source_file import SourceFile
from signoff.errors import InvalidWorkflow, Problem
from signoff.flows.compile import compile_flow
from signoff.flows.flow import Flow
from signoff.flows.reading import ReadFlow, read_flow
from signoff.flows.reviewers import absent_agents, missing_agents, reviewers_of
from signoff.flows.sections import Goal
from signoff.flows.selection import resolve_constraints_for_step
from signoff.flows.step import StepKind, WorkflowStep
from signoff.flows.warnings import independence_warnings, relatives, source_warnings
from signoff.notation import CompileContext
from signoff.remedies import PassOption

NO_GOAL = Goal.model_construct(goal="")
"""Stands in while a flow is only checked; a run of it is refused."""


def compile_file(file: SourceFile, context: CompileContext) -> Workflow:
    """Returns the workflow a flow file describes; raises `InvalidWorkflow` with every problem."""
    root = context.root
    goal = root / context.options["goal"] if context.options.get("goal") else None
    read = read_flow(file, root=root, home=context.home, goal=goal, known=context.agent_names)
    flow = _flow(read, context)
    name = read.config.name or file.path.stem
    problems = list(_problems(read, flow, file.path.name, check_only=context.check_only))
    if problems:
        goal_file = () if read.goal is not None else PassOption("goal", "FILE")
        raise InvalidWorkflow(name, problems, remedy=goal_file)
    return compile_flow(flow, name, [*read.remarks, *_remarks(flow)])


def _flow(read: ReadFlow, context: CompileContext) -> Flow:
    return Flow(
        config=read.config,
        goal=read.goal or NO_GOAL,
        constraints=read.constraints,
        root=context.root,
        home=context.home,
        default_agent=context.default_agent or DEFAULT_AGENT,
        found=tuple(context.installed or PROGRAMS),
        agents=context.agents,
        allow_scripts=bool(context.options.get("allow_scripts")) or read.config.allow_scripts,
        given=context.stored,
    )


def _problems(read: ReadFlow, flow: Flow, name: str, *, check_only: bool) -> Iterator[Problem]:
    if read.goal is None and not check_only:
        yield Problem(name, "there is no goal", "name a goal file, or add goal: to the flow")
    rule = flow.config.independence
    if rule.rule == "different_family" and rule.otherwise == "refuse":
        found = relatives(flow)
        if found.same:
            remedy = "let another agent review or write, or set independence.otherwise: report"
            yield Problem(name, f"critics are not independent: {found}", remedy)


def _remarks(flow: Flow) -> Iterator[str]:
    yield from source_warnings(flow)
    other = flow.default_agent
    if other != DEFAULT_AGENT and any(_by_default(flow, s) for s in flow.config.workflow):
        yield f"{DEFAULT_AGENT} is not on PATH: steps that name no agent are worked by `{other}`"
    for agent, steps in absent_agents(flow).items():
        yield f"{agent} is not on PATH; it works: {', '.join(steps)}"
    yield from independence_warnings(flow)
    for step in flow.of_kind(StepKind.CRITIQUE):
        for agent, constraints in missing_agents(flow, step).items():
            yield f"{agent} is not installed and reviews nothing of: {', '.join(constraints)}"


def _by_default(flow: Flow, step: WorkflowStep) -> bool:
    """Tells whether a step is worked, or some constraint read, by whoever is the default."""
    if step.step is not StepKind.CRITIQUE:
        return step.agent is None
    chosen = resolve_constraints_for_step(step, flow.constraints)
    return any(flow.default_agent in reviewers_of(flow, step, each) for each in chosen)
