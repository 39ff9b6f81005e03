"""Compiles a contract file; every problem is reported at once, with its line."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial

from signoff.contracts.compile import compile_definition
from signoff.contracts.contract_file import VERSION, ContractFile
from signoff.contracts.database import with_absolute_paths
from signoff.contracts.definition import find_problems, resolve_functions
from signoff.contracts.model import WorkflowDefinition, WorkflowStep
from signoff.contracts.reading import Locate, read_definition, snake_case, to_plain_values
from signoff.core.workflow import Workflow
from signoff.documents.mistakes import Path, format_path, line_of
from signoff.documents.source_file import SourceFile
from signoff.documents.yaml_text import Document
from signoff.errors import InvalidWorkflow, Problem
from signoff.notation import CompileContext


def compile_file(file: SourceFile, context: CompileContext) -> Workflow:
    """Returns the workflow of a contract file; raises `InvalidWorkflow` with every problem.

    The database's path is relative to the project's folder, and programs run there.
    """
    document, definition = _read(file, context.agent_names)
    definition = _with_default_agent(definition, document, context.default_agent)
    definition = resolve_functions(definition, partial(_locate, document))
    database = definition.database
    located = replace(
        definition,
        database=database and with_absolute_paths(database, context.root),
        folder=str(context.root),
    )
    try:
        # The description has the paths as written, so that a moved project can resume its runs.
        return compile_definition(located, described=definition, source={"given": context.stored})
    except InvalidWorkflow as error:
        problems = [_with_line(each, definition, document) for each in error.problems]
        raise InvalidWorkflow(file.name, problems) from None


def _read(
    file: SourceFile, agent_names: Collection[str] | None
) -> tuple[Document, WorkflowDefinition]:
    problems: list[Problem] = []
    definition: WorkflowDefinition | None = None
    document = file.mapping(problems, "settings of a contract workflow", VERSION)
    if document is not None:
        locate = partial(_locate, document)
        definition, mistakes = read_definition(to_plain_values(document.content), ContractFile)
        problems += [mistake.problem(locate) for mistake in mistakes]
        if definition is not None:
            problems += find_problems(definition, locate)
            problems += _unknown_agents(definition, locate, agent_names)
    if document is None or definition is None or problems:
        raise InvalidWorkflow(file.name, sorted(dict.fromkeys(problems), key=line_of))
    return document, definition


def _locate(document: Document, path: Path) -> str:
    """Returns the line of a key, which the author may have written in camel case."""
    written: list[str | int] = []
    node = document.content
    for part in path:
        key = part
        if isinstance(node, dict):
            key = next((each for each in node if snake_case(each) == part), part)
            node = node.get(key)
        elif isinstance(node, list) and isinstance(part, int) and part < len(node):
            node = node[part]
        written.append(key)
    return document.at(tuple(written))


def _unknown_agents(
    definition: WorkflowDefinition, locate: Locate, known: Collection[str] | None
) -> Iterator[Problem]:
    """Yields names of agents that do not exist, before any other agent is paid."""
    names: list[tuple[Path, str]] = [
        (("roles", role), agent) for role, agent in definition.roles.items()
    ]
    names += [
        (("steps", index, "agent"), step.agent)
        for index, step in enumerate(definition.steps)
        if step.prompt and step.agent not in (WorkflowStep.agent, *definition.roles)
    ]
    for path, agent in names:
        if known is not None and agent not in known:
            close = difflib.get_close_matches(agent, known, n=1)
            suggestion = f"did you mean {close[0]!r}? " if close else ""
            what = f"{format_path(path)} is the unknown agent {agent!r}"
            yield Problem(locate(path), what, f"{suggestion}valid: {', '.join(sorted(known))}")


def _with_default_agent(
    definition: WorkflowDefinition, document: Document, agent: str
) -> WorkflowDefinition:
    """Returns the definition with the default agent in steps whose prompt names no agent."""
    raw_steps = document.content["steps"]
    steps = tuple(
        replace(step, agent=agent) if agent and step.prompt and "agent" not in raw else step
        for step, raw in zip(definition.steps, raw_steps, strict=True)
    )
    return replace(definition, steps=steps)


def _with_line(problem: Problem, definition: WorkflowDefinition, document: Document) -> Problem:
    """Returns a problem of a step, or of several that run together, with its line."""
    first = problem.step.partition("+")[0]
    names = [step.name for step in definition.steps]
    path: Path = ("steps", names.index(first)) if first in names else ("steps",)
    return Problem(document.at(path), f"{problem.where}: {problem.what}", problem.remedy)
