"""Checks definitions whole, and makes them workflows."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from signoff.contracts.compile import compile_definition, groups_of
from signoff.contracts.database import check_address, located
from signoff.contracts.expressions import BadExpression, Expression
from signoff.contracts.model import (
    Check,
    Condition,
    ConditionalNext,
    Database,
    HumanGate,
    WorkflowDefinition,
    WorkflowStep,
)
from signoff.contracts.named import Named
from signoff.contracts.reading import At, one_of, read_definition, spelled
from signoff.core.workflow import Workflow
from signoff.errors import ConfigError, InvalidWorkflow, Problem


def define_workflow(
    definition: WorkflowDefinition | Mapping[str, Any],
    *,
    commands: Mapping[str, Callable[..., Any]] | None = None,
) -> Workflow:
    """Returns the workflow a definition describes; raises `InvalidWorkflow` with every problem.

    Keys may be written as here (`initial_step`) or as in JavaScript (`initialStep`).
    `commands` are the functions that steps name as theirs. The path of a database is seen from
    the folder of the file that calls this, wherever the run goes on.
    """
    problems: list[Problem] = []
    read = (
        definition
        if isinstance(definition, WorkflowDefinition)
        else read_definition(definition, problems)
    )
    if read is None:
        raise InvalidWorkflow("contract", problems)
    read = _seen_from(read, _folder_of_caller())
    if commands:
        read = replace(read, commands={**read.commands, **commands})
    if problems:
        # A step that could not be read is named by others, who are not wrong.
        whole = isinstance(definition, Mapping) and len(definition["steps"]) == len(read.steps)
        others = problems_of(read, _by_name(read)) if whole else ()
        raise InvalidWorkflow(read.type, [*problems, *others])
    return compiled(read)


def _folder_of_caller() -> Path:
    """Returns the folder of the file that defines a workflow; the current one at a prompt."""
    file = sys._getframe(2).f_globals.get("__file__")
    return Path(file).resolve().parent if file else Path.cwd()


def _seen_from(definition: WorkflowDefinition, folder: Path) -> WorkflowDefinition:
    database = definition.database
    if database is None:
        return definition
    try:
        return replace(definition, database=located(database, folder))
    except ConfigError:
        return definition  # reported with all other problems


def compiled(
    definition: WorkflowDefinition,
    at: At | None = None,
    source: Mapping[str, Any] | None = None,
) -> Workflow:
    """Checks a definition and compiles it."""
    problems = list(problems_of(definition, at or _by_name(definition)))
    if problems:
        raise InvalidWorkflow(definition.type or "contract", problems)
    return compile_definition(resolved(definition), source=source)


def problems_of(definition: WorkflowDefinition, at: At) -> Iterator[Problem]:
    """Yields everything that is wrong with a definition, each with its place."""
    if not definition.type:
        yield Problem(at(("type",)), "there is no type", "a short name such as w1_editing")
    if not definition.steps:
        yield Problem(at(("steps",)), "there are no steps", "at least one")
        return
    names = [step.name for step in definition.steps]
    for name, count in Counter(names).items():
        if count > 1:
            where = at(("steps", names.index(name), "name"))
            yield Problem(where, f"{name!r} is the name of {count} steps", "give each its own")
    start = definition.initial_step
    if start is not None and start not in names:
        yield Problem(at(("initial_step",)), f"{start!r} is no step", one_of(names))
    yield from _database_problems(definition.database, at)
    yield from _together_problems(definition, at)
    for index, step in enumerate(definition.steps):
        yield from _step_problems(step, definition, lambda *p, i=index: at(("steps", i, *p)))


def _database_problems(database: Database | None, at: At) -> Iterator[Problem]:
    if database is None:
        return
    try:
        check_address(database.url)
    except ConfigError as error:
        yield Problem(at(("database",)), str(error))


def _together_problems(definition: WorkflowDefinition, at: At) -> Iterator[Problem]:
    """Yields what steps say that run together with a later one, which speaks for all of them."""
    index = 0
    for group in groups_of(definition.steps):
        last = group[-1]
        allowed = {None, last.next, *(step.name for step in group)}
        for step in group[:-1]:
            what = f"step {step.name!r} runs together with {last.name!r}, which says what follows"
            if step.human_gate is not None:
                yield Problem(at(("steps", index, "human_gate")), what, "put the gate there")
            if isinstance(step.next, ConditionalNext) or step.next not in allowed:
                yield Problem(at(("steps", index, "next")), what, "put `next` there")
            index += 1
        index += 1


def _step_problems(
    step: WorkflowStep, definition: WorkflowDefinition, at: Callable[..., str]
) -> Iterator[Problem]:
    names = [each.name for each in definition.steps]
    if not step.name or "+" in step.name or "/" in step.name:
        yield Problem(at("name"), f"the name {step.name!r} will not do", "letters, digits, - and _")
    yield from _command_problems(step, definition, at)
    yield from _schema_problems(step, at)
    functions = Named(definition.commands)
    for key in ("preconditions", "postconditions"):
        yield from _condition_problems(getattr(step, key), functions, partial(at, key))
    if isinstance(step.next, ConditionalNext):
        yield from _check_problems(step.next.condition, functions, at("next", "condition"))
    yield from _branch_problems(step.next, names, at)
    if step.parallel_key is not None and not step.parallel:
        what = "parallel_key without parallel: true"
        yield Problem(at("parallel_key"), what, "say parallel: true as well")
    if step.human_gate is not None:
        yield from _gate_problems(step.human_gate, names, at)


def _branch_problems(
    branch: str | ConditionalNext | None, names: list[str], at: Callable[..., str]
) -> Iterator[Problem]:
    if isinstance(branch, ConditionalNext):
        for key in ("on_true", "on_false"):
            if getattr(branch, key) not in names:
                what = f"next.{key} is {getattr(branch, key)!r}, which is no step"
                yield Problem(at("next", key), what, one_of(names))
        if branch.max_iterations is not None and branch.max_iterations < 1:
            what = f"next.max_iterations is {branch.max_iterations}"
            yield Problem(at("next", "max_iterations"), what, "a whole number from 1")
    elif branch is not None and branch not in names:
        yield Problem(at("next"), f"next is {branch!r}, which is no step", one_of(names))


def _command_problems(
    step: WorkflowStep, definition: WorkflowDefinition, at: Callable[..., str]
) -> Iterator[Problem]:
    command = step.command
    if command is not None and step.prompt:
        yield Problem(at("prompt"), "has a command and a prompt", "one of them")
    if command is None and not step.prompt and step.human_gate is None:
        yield Problem(at(), f"step {step.name!r} does nothing", "a command, a prompt or a gate")
    functions = Named(definition.commands)
    if isinstance(command, str) and functions.knows(command):
        yield from functions.problems(command, at("command"), "command")
    elif isinstance(command, str):
        listed = f"a program is a list: [{', '.join(command.split())}]"
        right = "; ".join(filter(None, (functions.listed, listed)))
        yield Problem(at("command"), f"no command is called {command!r}", right)
    elif not callable(command) and not _is_program(command):
        what = f"the command is {command!r:.60}"
        yield Problem(at("command"), what, "a function, or a list: a program and its arguments")


def _is_program(command: Any) -> bool:
    if command is None:
        return True
    listed = isinstance(command, list | tuple) and bool(command)
    return listed and all(isinstance(word, str) for word in command)


def _schema_problems(step: WorkflowStep, at: Callable[..., str]) -> Iterator[Problem]:
    if step.schema is None:
        return
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(dict(step.schema))
    except SchemaError as error:
        what = f"this is no JSON Schema, at {error.json_path}: {error.message:.200}"
        yield Problem(at("schema"), what)


def _condition_problems(
    conditions: Any, functions: Named, at: Callable[..., str]
) -> Iterator[Problem]:
    if not isinstance(conditions, list | tuple):
        yield Problem(at(), f"is {conditions!r:.60}", "a list of conditions")
        return
    for place, condition in enumerate(conditions):
        if isinstance(condition, Condition):
            yield from _check_problems(condition.check, functions, at(place, "check"))
        else:
            right = "a condition, a function, or an expression"
            yield Problem(at(place), f"is {condition!r:.60}", right)


def _check_problems(check: Any, functions: Named, where: str) -> Iterator[Problem]:
    if callable(check):
        return
    if not isinstance(check, str):
        yield Problem(where, f"is {check!r:.60}", "a function, or an expression")
        return
    if functions.knows(check):
        yield from functions.problems(check, where, "condition")
        return
    try:
        Expression(check)
    except BadExpression as error:
        yield Problem(where, str(error))


def _gate_problems(gate: HumanGate, names: list[str], at: Callable[..., str]) -> Iterator[Problem]:
    if not gate.options:
        yield Problem(at("human_gate"), "the gate has no options", "at least one")
    labels = Counter(option.label for option in gate.options)
    for place, option in enumerate(gate.options):
        if not option.label or labels[option.label] > 1:
            where = at("human_gate", "options", place, "label")
            yield Problem(where, f"the label {option.label!r} will not do", "one of its own")
        if option.ends not in (None, "completed", "rejected"):
            where = at("human_gate", "options", place, "ends")
            yield Problem(where, f"ends is {option.ends!r:.60}", "one of: completed, rejected")
        if option.next_step is not None and option.next_step not in names:
            where = at("human_gate", "options", place, "next_step")
            what = f"option {option.label!r} leads to {option.next_step!r}, which is no step"
            yield Problem(where, what, one_of(names))


def resolved(definition: WorkflowDefinition) -> WorkflowDefinition:
    """Puts functions in the place of their names."""
    functions = Named(definition.commands)
    steps = tuple(_resolved_step(step, functions) for step in definition.steps)
    return replace(definition, steps=steps)


def _resolved_step(step: WorkflowStep, functions: Named) -> WorkflowStep:
    command, branch = step.command, step.next

    def resolved_check(check: Check | str) -> Check | str:
        named = isinstance(check, str) and functions.knows(check)
        return functions.found(str(check)) if named else check

    def resolved_all(conditions: Sequence[Condition]) -> tuple[Condition, ...]:
        return tuple(replace(each, check=resolved_check(each.check)) for each in conditions)

    if isinstance(branch, ConditionalNext):
        branch = replace(branch, condition=resolved_check(branch.condition))
    return replace(
        step,
        command=functions.found(command) if isinstance(command, str) else command,
        preconditions=resolved_all(step.preconditions),
        postconditions=resolved_all(step.postconditions),
        next=branch,
    )


def _by_name(definition: WorkflowDefinition) -> At:
    """Says where something stands by the step's name, where there is no file to point into."""

    def at(path: tuple[str | int, ...]) -> str:
        match path:
            case ("steps", int() as index, *rest):
                return spelled((f"step {definition.steps[index].name!r}", *rest))
            case _:
                return spelled(path)

    return at
