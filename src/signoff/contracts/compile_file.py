"""Compiles a contract file; every mistake is reported at once, with its line."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from signoff.contracts.compile import compile_definition, described
from signoff.contracts.contract_file import VERSION, ContractFile
from signoff.contracts.database import located
from signoff.contracts.definition import problems_of, resolved
from signoff.contracts.model import WorkflowDefinition, WorkflowStep
from signoff.contracts.reading import At, our_name, plain, read_definition
from signoff.core.workflow import Workflow
from signoff.documents.mistakes import Path, format_path, line_of
from signoff.documents.source_file import SourceFile
from signoff.documents.yaml_text import Document
from signoff.errors import InvalidWorkflow, Problem
from signoff.notation import CompileContext


def compile_file(file: SourceFile, context: CompileContext) -> Workflow:
    """Returns the workflow a contract file describes; raises `InvalidWorkflow` with every problem.

    The database's path is seen from the project's folder, and programs run there.
    """
    read = read_contract(file, known=context.agent_names)
    definition = resolved(read.asking(context.default_agent))
    database = definition.database
    # Described as written, so that a project that was moved finds its runs unchanged.
    backups = str((context.home or context.root) / "backups")
    placed = replace(
        definition,
        database=database and located(database, context.root, backups),
        folder=str(context.root),
    )
    source = {"contract": described(definition), "given": context.stored}
    try:
        return compile_definition(placed, source=source)
    except InvalidWorkflow as error:
        raise InvalidWorkflow(file.name, [read.placed(each) for each in error.problems]) from None


@dataclass(frozen=True)
class ReadContract:
    """What a contract file says, and where it says it."""

    definition: WorkflowDefinition
    document: Document

    def asking(self, default_agent: str) -> WorkflowDefinition:
        """Returns the definition with steps that name no agent given to the default one."""
        if not default_agent:
            return self.definition
        raw = self.document.content["steps"]
        steps = tuple(
            step if "agent" in said or not step.prompt else replace(step, agent=default_agent)
            for step, said in zip(self.definition.steps, raw, strict=True)
        )
        return replace(self.definition, steps=steps)

    def placed(self, problem: Problem) -> Problem:
        """Returns a problem of a step, or of several that run together, with its line."""
        first = problem.step.partition("+")[0]
        names = [step.name for step in self.definition.steps]
        place: Path = ("steps", names.index(first)) if first in names else ("steps",)
        where = self.document.at(place)
        return Problem(where, f"{problem.where}: {problem.what}", problem.remedy)


def read_contract(file: SourceFile, *, known: Collection[str] | None = None) -> ReadContract:
    """Reads a contract file; raises `InvalidWorkflow` with every problem.

    `known` are the agents and roles there are; without them every name is taken for one.
    """
    problems: list[Problem] = []
    document = file.mapping(problems, "settings of a contract workflow", VERSION)
    definition = _checked(document, problems, known) if document is not None else None
    if document is None or definition is None or problems:
        raise InvalidWorkflow(file.name, sorted(dict.fromkeys(problems), key=line_of))
    return ReadContract(definition, document)


def _checked(
    document: Document, problems: list[Problem], known: Collection[str] | None
) -> WorkflowDefinition | None:
    """Returns what can be made of a file; with problems, only good for finding more of them."""
    at = _At(document)
    definition, mistakes = read_definition(plain(document.content), ContractFile)
    problems.extend(mistake.problem(at) for mistake in mistakes)
    if definition is not None:
        problems.extend(problems_of(definition, at))
        problems.extend(_strangers(definition, at, known))
    return definition


def _strangers(
    definition: WorkflowDefinition, at: At, known: Collection[str] | None
) -> Iterator[Problem]:
    """Yields agents that are named and nobody knows, before anybody else was paid."""
    if known is None:
        return
    named: list[tuple[Path, str]] = [
        (("roles", role), agent) for role, agent in definition.roles.items()
    ]
    named += [
        (("steps", index, "agent"), step.agent)
        for index, step in enumerate(definition.steps)
        if step.prompt and step.agent not in (WorkflowStep.agent, *definition.roles)
    ]
    for place, agent in named:
        if agent not in known:
            close = difflib.get_close_matches(agent, known, n=1)
            meant = f"did you mean {close[0]!r}? " if close else ""
            what = f"{format_path(place)} is {agent!r}, and no agent or role is called so"
            yield Problem(at(place), what, f"{meant}there is: {', '.join(sorted(known))}")


@dataclass(frozen=True)
class _At:
    """Says on which line something stands, by our names of its keys."""

    document: Document

    def __call__(self, path: Path) -> str:
        written: list[str | int] = []
        node = self.document.content
        for part in path:
            key = part
            if isinstance(node, dict):
                key = next((each for each in node if our_name(each) == part), part)
                node = node.get(key)
            elif isinstance(node, list) and isinstance(part, int) and part < len(node):
                node = node[part]
            written.append(key)
        return self.document.at(tuple(written))
