"""The flow behind `signoff review`: an ordinary review flow, built from options.

The whole flow with its constraints is an option of the run and stored with it. So a resumed review
is the one that was started, whatever has changed in the project since.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from signoff.agents.base import KnownAgent
from signoff.agents.kinds import DEFAULT_AGENT
from signoff.core.errors import InvalidWorkflow, Problem, UnknownName, UsageError
from signoff.core.severity import Severity
from signoff.core.workflow import Workflow
from signoff.documents.discovery import Discovery
from signoff.notation import CompileContext
from signoff.review.flow.compile import NO_GOAL, compile_flow, flow_in, frozen_source
from signoff.review.flow.decision_file import read_decisions
from signoff.review.flow.model import Flow, config_from_json
from signoff.review.flow.reading import config_from_dict
from signoff.review.flow.sections import (
    Goal,
    InlineConstraint,
    constraint_from_dict,
    inline_constraint,
    load_constraints,
)
from signoff.review.flow.validation import (
    source_problems,
    unable_reviewers,
    unable_writers,
    unknown_agents,
)
from signoff.review.pure.constraint import Constraint, SourceBlock

OPTION = "review"
"""The option that holds the flow of a review."""
TARGET = "review:files"
NAME = "review"
ROUNDS = 3
"""Rounds of a review that fixes what it finds."""
_OTHER_FIXER = (
    "let another agent fix (the option `fixer`), or name the check in the file of its constraint "
    "(agents: in .signoff/constraints) and another agent for the rest (the option `agent`)"
)
_NAMED = re.compile(r"([a-z][a-z0-9_-]{0,39}):\s+(.*)", re.DOTALL)


def review_source(
    paths: Sequence[str],
    since: str | None,
    options: Mapping[str, Any],
    constraints: Sequence[Constraint],
) -> dict[str, Any]:
    """Returns the flow of a review as plain data; `options` are those of the command line.

    The paths are relative to the project's folder.
    """
    config = config_from_dict(_flow_keys(paths, since, options), NAME)
    flow = Flow(config=config, goal=NO_GOAL, constraints=tuple(constraints), root=Path())
    return {key: value for key, value in frozen_source(flow).items() if key != "given"}


def find_constraints(
    home: Path | None, preset: str | None, sentences: Sequence[str]
) -> list[Constraint]:
    """Returns the constraints of a review: those that are named, else those of the project."""
    folder = home / "constraints" if home is not None else Path("constraints")
    constraints = _preset_constraints(folder, preset) if preset is not None else []
    # A sentence may have a name in front, so that findings of two sentences can be told apart and a
    # comment in a file can ignore one of them.
    for number, sentence in enumerate(sentences, start=1):
        named = _NAMED.fullmatch(sentence.strip())
        name, text = (named[1], named[2]) if named else (f"rule-{number}", sentence.strip())
        if not text:
            raise UsageError(
                "a constraint is empty; write what to review against, as TEXT or NAME: TEXT"
            )
        if name in {each.id for each in constraints}:
            raise UsageError(f"two constraints are called {name!r}; give one another name")
        constraints.append(inline_constraint(name, number, InlineConstraint(summary=text)))
    if not constraints and folder.is_dir():
        constraints = _project_constraints(folder)
    if not constraints:
        raise UsageError(
            "there are no constraints to review against; name a preset "
            f"({', '.join(preset_names())}), write a constraint as text, or add files to "
            ".signoff/constraints"
        )
    return constraints


def _project_constraints(folder: Path) -> list[Constraint]:
    """Returns the constraints of a project: those of a preset only if there is no other."""
    constraints = load_constraints(folder)
    # With one set there is no doubt which one is meant. Choosing among several would decide for the
    # user what a review is about.
    sets = _sets(folder)
    if constraints or not sets:
        return constraints
    if len(sets) > 1:
        raise UsageError(
            "this project has several sets of constraints; name one as the preset: "
            f"{', '.join(sets)}"
        )
    return load_constraints(folder / sets[0])


def _preset_constraints(project: Path, name: str) -> list[Constraint]:
    """Returns the constraints of a preset as they are in the project, or else as we ship them."""
    if name in _sets(project):
        return load_constraints(project / name)
    if name not in preset_names():
        raise UnknownName("preset", name, sorted({*preset_names(), *_sets(project)}))
    # A preset that was not added to the project has no agents and no sources there, and naming them
    # would make the review fail before it starts.
    shipped = load_constraints(_presets() / name / "home" / "constraints" / name)
    # Agents and sources that a constraint names are in what the preset adds to a project.
    return [replace(each, source=SourceBlock()) for each in shipped if not each.agents]


def _sets(folder: Path) -> list[str]:
    """Returns the folders of a project's constraints, each of which is a set."""
    if not folder.is_dir():
        return []
    return sorted(each.name for each in folder.iterdir() if each.is_dir() and any(each.iterdir()))


def with_agents(
    constraints: Sequence[Constraint],
    known: Mapping[str, KnownAgent],
    *,
    execute: bool = True,
) -> tuple[list[Constraint], list[str]]:
    """Returns the constraints as a review uses them, and the ids of those it leaves out.

    A program that executes the project is left out where nothing of a change may be executed.
    """
    used, left_out = list[Constraint](), list[str]()
    for each in constraints:
        can = [known[name].capabilities for name in each.agents or () if name in known]
        if not execute and any(one.whole_project for one in can):
            left_out.append(each.id)
        else:
            used.append(each)
    return used, left_out


def check_project(context: CompileContext) -> Discovery:
    """Returns what is wrong with the constraints and decisions of a project's reviews."""
    problems = list[Problem]()
    home = context.home or context.root
    folder = home / "constraints"
    for each in (folder, *(folder / name for name in _sets(folder))):
        try:
            if constraints := load_constraints(each) if each.is_dir() else []:
                source = review_source(["."], None, {}, constraints)
                resolve(TARGET.partition(":")[2], replace(context, options={OPTION: source}))
        except InvalidWorkflow as error:
            problems += error.problems
    try:
        read_decisions(home)
    except InvalidWorkflow as error:
        problems += error.problems
    return Discovery((), tuple(problems))


def preset_names() -> list[str]:
    """Returns the presets that have constraints."""
    return sorted(each.name for each in _presets().iterdir() if each.is_dir())


def resolve(name: str, context: CompileContext) -> Workflow:
    """Returns the workflow of a review, from the flow that its options hold."""
    source = context.options.get(OPTION)
    if name != TARGET.partition(":")[2] or not isinstance(source, Mapping):
        raise UsageError("a review has its own command, which names the files to review")
    config = config_from_json(source["flow"])
    constraints = tuple(constraint_from_dict(each) for each in source["constraints"])
    if context.agent_names is not None:
        _check_agent(config.constraints.routing.default_agents, context.agent_names)
    mistakes = unknown_agents(config, constraints, context.agent_names)
    if not context.resumes:
        default = context.default_agent or DEFAULT_AGENT
        unable = unable_writers(config, context.agents, default)
        mistakes += [replace(each, remedy=_OTHER_FIXER) for each in unable]
        mistakes += unable_reviewers(config, constraints, context.agents)
    if mistakes:
        problems = [Problem(NAME, each.what, each.remedy) for each in mistakes]
        raise InvalidWorkflow(NAME, problems)
    # The flow is read from what the run has stored, never built again: options and presets may have
    # changed since it was started.
    goal = source.get("goal") or {}
    flow = flow_in(
        context,
        config=config,
        goal=Goal(**goal) if goal else NO_GOAL,
        constraints=constraints,
        default_agent=context.default_agent or DEFAULT_AGENT,
    )
    if not context.resumes and (missing := list(source_problems(flow))):
        remedy = "fix the path, or take it out"
        raise InvalidWorkflow(NAME, [Problem(NAME, each, remedy) for each in missing])
    return compile_flow(flow, NAME)


def _check_agent(names: Sequence[str], known: Collection[str]) -> None:
    """Refuses an unknown agent by what the user wrote, not by the key of a flow no one sees."""
    for name in names:
        if name not in known:
            # To the caller of an API, an unknown name would be a page that does not exist.
            raise UsageError(str(UnknownName("agent", name, sorted(known))))


def _flow_keys(
    paths: Sequence[str], since: str | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    reviewer, fix = options.get("agent"), options.get("fix")
    fixer = options.get("fixer") or reviewer
    agent = {"agent": fixer} if fixer else {}
    # A constraint that names its agents keeps them.
    routing = {"constraints": {"routing": {"default_agents": [reviewer]}}}
    steps: list[dict[str, Any]] = [
        {"step": "critique", "name": "review"},
        {"step": "adjudicate", "name": "policy", "agent": "policy"},
    ]
    if fix:
        steps.append(
            {"step": "refine", "name": "fix", "mode": "apply", "loop_to": "review", **agent}
        )
    # These keys are those of a flow file: a review is an ordinary flow that nobody had to write.
    artifact = {
        "paths": list(paths),
        "since": since,
        "all_lines": options.get("all_lines"),
        "intent": options.get("intent"),
    }
    least = Severity(options["fail_on"].upper()) if options.get("fail_on") else None
    judging = {"approval": {"block_on": [each.value for each in least.or_worse]}} if least else None
    return {
        "name": NAME,
        "artifact": {key: value for key, value in artifact.items() if value},
        "output": {"write_back": "on_approval" if options.get("write") else "never"},
        **(routing if reviewer else {}),
        **({"adjudication": judging} if judging else {}),
        "workflow": steps,
        "max_iterations": ROUNDS if fix else 1,
        "rereview": "changed",
        "max_findings": 20,
        # A minor finding blocks nothing, but a reader of the review wants to know it.
        "default_behavior": {"low": "continue"},
    }


def _presets() -> Path:
    return Path(__file__).with_name("presets")
