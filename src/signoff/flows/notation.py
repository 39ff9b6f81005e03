"""Reads a flow file into a workflow: the flow, its goal, its constraints, checked together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from signoff.core.workflow import Workflow
from signoff.errors import InvalidWorkflow, Problem
from signoff.flows.compile import compile_flow
from signoff.flows.flow import BUILT_IN_AGENTS, Flow
from signoff.flows.independence import dependence, relatives
from signoff.flows.model import Goal, StepKind, WorkflowStep
from signoff.flows.reading import ReadFlow, read_flow
from signoff.flows.reviewers import absent_agents, missing_agents, reviewers_of
from signoff.flows.selection import resolve_constraints_for_step
from signoff.flows.source_remarks import source_remarks

GIVEN = ("goal", "allow_scripts", "default_agent", "found")
"""What of the command line and of this machine a run depends on."""


def read_notation(
    path: Path,
    *,
    root: Path,
    home: Path | None = None,
    options: Mapping[str, Any] | None = None,
    agents: Mapping[str, Mapping[str, Any]] | None = None,
) -> Workflow:
    """Returns the workflow a YAML file describes; raises `InvalidWorkflow` with every problem."""
    said = options or {}
    goal = root / said["goal"] if said.get("goal") else None
    read = read_flow(path, root=root, home=home, goal=goal, known=said.get("known"))
    flow = _flow(read, root, home, said, agents or {})
    name = read.config.name or path.stem
    problems = list(_problems(read, flow, path, check_only=bool(said.get("check_only"))))
    if problems:
        raise InvalidWorkflow(name, problems)
    return compile_flow(flow, name, [*read.remarks, *_remarks(flow)])


def _flow(
    read: ReadFlow,
    root: Path,
    home: Path | None,
    said: Mapping[str, Any],
    agents: Mapping[str, Mapping[str, Any]],
) -> Flow:
    models = {name: str(each["model"]) for name, each in agents.items() if each.get("model")}
    return Flow(
        config=read.config,
        goal=read.goal or Goal(""),
        constraints=read.constraints,
        root=root,
        home=home,
        default_agent=said.get("default_agent") or BUILT_IN_AGENTS[0],
        found=tuple(said.get("found") or BUILT_IN_AGENTS),
        kinds={name: str(each.get("kind") or name) for name, each in agents.items()},
        models=models,
        without_hands=frozenset(
            name
            for name, each in agents.items()
            if each.get("kind") == "command" and not each.get("edits")
        ),
        allow_scripts=bool(said.get("allow_scripts")) or read.config.allow_scripts,
        given={key: said[key] for key in GIVEN if said.get(key)},
    )


def _problems(read: ReadFlow, flow: Flow, path: Path, *, check_only: bool) -> Iterator[Problem]:
    if read.goal is None and not check_only:
        yield Problem(path.name, "there is no goal", "give --goal FILE, or write goal: in the flow")
    rule = flow.config.independence
    if rule.rule == "different_family" and rule.otherwise == "refuse":
        found = relatives(flow)
        if found.same:
            remedy = "let another agent review or write, or set independence.otherwise: report"
            yield Problem(path.name, f"critics are not independent: {found}", remedy)


def _remarks(flow: Flow) -> Iterator[str]:
    yield from source_remarks(flow)
    if flow.default_agent == "auto" and any(_by_default(flow, s) for s in flow.config.workflow):
        yield "claude is not on PATH: steps that name no agent are worked by `auto`"
    for agent, steps in absent_agents(flow).items():
        yield f"{agent} is not on PATH; it works: {', '.join(steps)}"
    yield from dependence(flow)
    for step in flow.of_kind(StepKind.CRITIQUE):
        for agent, constraints in missing_agents(flow, step).items():
            yield f"{agent} is not installed and reviews nothing of: {', '.join(constraints)}"


def _by_default(flow: Flow, step: WorkflowStep) -> bool:
    """Tells whether a step is worked, or some constraint read, by whoever is the default."""
    if step.step is not StepKind.CRITIQUE:
        return step.agent is None
    chosen = resolve_constraints_for_step(step, flow.constraints)
    return any(flow.default_agent in reviewers_of(flow, step, each) for each in chosen)
