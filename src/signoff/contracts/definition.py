"""Checks definitions whole, and makes them workflows."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from signoff.contracts.compile import compile_definition, groups_of
from signoff.contracts.contract_file import PythonDefinition
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
from signoff.contracts.reading import At, plain, read_definition
from signoff.core.workflow import Workflow
from signoff.documents.mistakes import format_path
from signoff.errors import ConfigError, InvalidWorkflow, Problem

_IMPORT_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def define_workflow(
    definition: WorkflowDefinition | Mapping[str, Any],
    *,
    commands: Mapping[str, Callable[..., Any]] | None = None,
) -> Workflow:
    """Returns the workflow a definition describes; raises `InvalidWorkflow` with every problem.

    Keys may be written as here (`initial_step`) or as in JavaScript (`initialStep`).
    `commands` are the functions that steps name as theirs. The path of a database is relative
    to the folder of the file that calls this, wherever the run is resumed.
    """
    raw = plain(definition, drop_empty=True)
    if not isinstance(raw, dict):
        problem = Problem("workflow", f"is {definition!r:.60}", "a mapping or a WorkflowDefinition")
        raise InvalidWorkflow("contract", [problem])
    at = _by_name(raw)
    read, mistakes = read_definition(raw, PythonDefinition)
    problems = [
        Problem(at(each.path), each.what.replace(format_path(each.path[:2]) + ".", ""), each.remedy)
        for each in mistakes
    ]
    if read is None:
        raise InvalidWorkflow("contract", problems)
    read = replace(read, commands={**read.commands, **(commands or {})})
    problems.extend(problems_of(read, at))
    if problems:
        raise InvalidWorkflow(read.type, problems)
    return compile_definition(resolved(_located(read, _folder_of_caller())))


def _folder_of_caller() -> Path:
    """Returns the folder of the file that defines a workflow; the current one at a prompt."""
    file = sys._getframe(2).f_globals.get("__file__")
    return Path(file).resolve().parent if file else Path.cwd()


def _located(definition: WorkflowDefinition, folder: Path) -> WorkflowDefinition:
    database = definition.database
    return replace(definition, database=database and located(database, folder))


def _by_name(raw: Mapping[str, Any]) -> At:
    """Returns where something is by the step's name, because there is no file to point into."""

    def at(path: tuple[str | int, ...]) -> str:
        match path:
            case ("steps", int() as index, *rest):
                step = raw["steps"][index]
                if isinstance(step, dict) and "name" in step:
                    return format_path((f"step {step['name']!r}", *rest))
        return format_path(path)

    return at


def problems_of(definition: WorkflowDefinition, at: At) -> Iterator[Problem]:
    """Yields whatever does not fit together in a definition of the right shape."""
    names = [step.name for step in definition.steps]
    for name, count in Counter(names).items():
        if count > 1:
            where = at(("steps", names.index(name), "name"))
            yield Problem(where, f"{name!r} is the name of {count} steps", "give each its own")
    start = definition.initial_step
    if start is not None and start not in names:
        yield Problem(
            at(("initial_step",)), f"initial_step is the unknown step {start!r}", _one_of(names)
        )
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
    """Yields gates and branches of steps that run together, except in the last of them."""
    index = 0
    for group in groups_of(definition.steps):
        last = group[-1]
        allowed = {None, last.next, *(step.name for step in group)}
        for step in group[:-1]:
            what = (
                f"step {step.name!r} runs together with {last.name!r}, which decides what follows"
            )
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
    yield from _command_problems(step, definition, at)
    yield from _schema_problems(step, at)
    functions = FunctionsByName(definition.commands)
    for key in ("preconditions", "postconditions"):
        for index, condition in enumerate(getattr(step, key)):
            yield from _check_problems(condition.check, functions, at(key, index, "check"))
    if isinstance(step.next, ConditionalNext):
        yield from _check_problems(step.next.condition, functions, at("next", "condition"))
    yield from _branch_problems(step.next, names, at)
    if step.parallel_key is not None and not step.parallel:
        what = "parallel_key without parallel: true"
        yield Problem(at("parallel_key"), what, "add parallel: true")
    if step.human_gate is not None:
        yield from _gate_problems(step.human_gate, names, at)


def _branch_problems(
    branch: str | ConditionalNext | None, names: list[str], at: Callable[..., str]
) -> Iterator[Problem]:
    if isinstance(branch, ConditionalNext):
        for key in ("on_true", "on_false"):
            if getattr(branch, key) not in names:
                what = f"next.{key} is the unknown step {getattr(branch, key)!r}"
                yield Problem(at("next", key), what, _one_of(names))
    elif branch is not None and branch not in names:
        yield Problem(at("next"), f"next is the unknown step {branch!r}", _one_of(names))


def _command_problems(
    step: WorkflowStep, definition: WorkflowDefinition, at: Callable[..., str]
) -> Iterator[Problem]:
    command = step.command
    if command is not None and step.prompt:
        yield Problem(at("prompt"), "has a command and a prompt", "one of them")
    if command is None and not step.prompt and step.human_gate is None:
        yield Problem(at(), f"step {step.name!r} does nothing", "a command, a prompt or a gate")
    functions = FunctionsByName(definition.commands)
    if isinstance(command, str) and functions.knows(command):
        yield from functions.problems(command, at("command"), "command")
    elif isinstance(command, str):
        listed = f"a program is a list: [{', '.join(command.split())}]"
        right = "; ".join(filter(None, (functions.listed, listed)))
        yield Problem(at("command"), f"no command is called {command!r}", right)


def _schema_problems(step: WorkflowStep, at: Callable[..., str]) -> Iterator[Problem]:
    if step.schema is None:
        return
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(dict(step.schema))
    except SchemaError as error:
        what = f"this is no JSON Schema, at {error.json_path}: {error.message:.200}"
        yield Problem(at("schema"), what)


def _check_problems(check: Any, functions: FunctionsByName, where: str) -> Iterator[Problem]:
    if not isinstance(check, str):
        return
    if functions.knows(check):
        yield from functions.problems(check, where, "condition")
        return
    try:
        Expression(check)
    except BadExpression as error:
        yield Problem(where, str(error))


def _gate_problems(gate: HumanGate, names: list[str], at: Callable[..., str]) -> Iterator[Problem]:
    labels = Counter(option.label for option in gate.options)
    for place, option in enumerate(gate.options):
        if labels[option.label] > 1:
            where = at("human_gate", "options", place, "label")
            what = f"{labels[option.label]} options have the label {option.label!r}"
            yield Problem(where, what, "give each its own")
        if option.next_step is not None and option.next_step not in names:
            where = at("human_gate", "options", place, "next_step")
            what = f"option {option.label!r} leads to the unknown step {option.next_step!r}"
            yield Problem(where, what, _one_of(names))


def resolved(definition: WorkflowDefinition) -> WorkflowDefinition:
    """Replaces the names of functions with the functions."""
    functions = FunctionsByName(definition.commands)
    steps = tuple(_resolved_step(step, functions) for step in definition.steps)
    return replace(definition, steps=steps)


def _resolved_step(step: WorkflowStep, functions: FunctionsByName) -> WorkflowStep:
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


@dataclass(frozen=True)
class FunctionsByName:
    """Finds functions by their registered name, or by `package.module:function`."""

    commands: Mapping[str, Callable[..., Any]]

    def knows(self, text: str) -> bool:
        """Returns whether a text is the name of a function and nothing else."""
        return text in self.commands or _IMPORT_PATH.fullmatch(text) is not None

    def found(self, text: str) -> Callable[..., Any]:
        """Returns a function whose name has no problems."""
        function: Callable[..., Any] = self._look_up(text)
        return function

    def problems(self, text: str, where: str, what: str) -> Iterator[Problem]:
        """Yields why no function has this name; `what` is the use of the function."""
        try:
            found = self._look_up(text)
        except Exception as error:  # noqa: BLE001  # a module may raise anything while it is imported
            reason = f"{type(error).__name__}: {error}"
            yield Problem(where, f"the {what} {text!r} cannot be loaded: {reason}", self.listed)
            return
        if not callable(found):
            yield Problem(where, f"the {what} {text!r} is not a function")

    @property
    def listed(self) -> str:
        """The registered names for messages; empty if there are none."""
        return f"there is: {', '.join(self.commands)}" if self.commands else ""

    def _look_up(self, text: str) -> Any:
        if text in self.commands:
            return self.commands[text]
        module, _, name = text.partition(":")
        return getattr(import_module(module), name)


def _one_of(names: Sequence[str]) -> str:
    return f"one of: {', '.join(names)}"
