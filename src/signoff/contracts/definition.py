"""Reads definitions given as dicts, checks them whole, and makes them workflows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from importlib import import_module
from typing import Any, TypeVar

from signoff.contracts.compile import compile_definition
from signoff.contracts.db.address import read_address
from signoff.contracts.expressions import BadExpression, Expression
from signoff.contracts.model import (
    Condition,
    ConditionalNext,
    Database,
    GateOption,
    HumanGate,
    WorkflowDefinition,
    WorkflowStep,
)
from signoff.core.spend import Limits
from signoff.core.workflow import Workflow
from signoff.errors import ConfigError, InvalidWorkflow, Problem

T = TypeVar("T")

_PLACE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_CAMEL = re.compile(r"(?<=[a-z0-9])([A-Z])")

At = Callable[[tuple[str | int, ...]], str]
"""Says where in the author's text something stands."""


def define_workflow(
    definition: WorkflowDefinition | Mapping[str, Any],
    *,
    commands: Mapping[str, Callable[..., Any]] | None = None,
) -> Workflow:
    """Returns the workflow a definition describes; raises `InvalidWorkflow` with every problem.

    Keys may be written as here (`initial_step`) or as in JavaScript (`initialStep`).
    `commands` are the functions that steps name as theirs.
    """
    problems: list[Problem] = []
    read = (
        definition
        if isinstance(definition, WorkflowDefinition)
        else read_definition(definition, problems)
    )
    if read is not None and commands:
        read = replace(read, commands={**read.commands, **commands})
    if read is None or problems:
        raise InvalidWorkflow(str(getattr(read, "type", "") or "contract"), problems)
    return compiled(read)


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
        yield Problem(at(("initial_step",)), f"{start!r} is no step", _one_of(names))
    yield from _database_problems(definition.database, at)
    for index, step in enumerate(definition.steps):
        yield from _step_problems(step, definition, lambda *p, i=index: at(("steps", i, *p)))


def _database_problems(database: Database | None, at: At) -> Iterator[Problem]:
    if database is None:
        return
    try:
        read_address(database.url)
    except ConfigError as error:
        yield Problem(at(("database",)), str(error))


def _step_problems(
    step: WorkflowStep, definition: WorkflowDefinition, at: Callable[..., str]
) -> Iterator[Problem]:
    names = [each.name for each in definition.steps]
    if not step.name or "+" in step.name or "/" in step.name:
        yield Problem(at("name"), f"the name {step.name!r} will not do", "letters, digits, - and _")
    yield from _command_problems(step, definition, at)
    for key in ("preconditions", "postconditions"):
        for place, condition in enumerate(getattr(step, key)):
            yield from _check_problems(condition.check, at(key, place, "check"))
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
        yield from _check_problems(branch.condition, at("next", "condition"))
        for key in ("on_true", "on_false"):
            if getattr(branch, key) not in names:
                what = f"next.{key} is {getattr(branch, key)!r}, which is no step"
                yield Problem(at("next", key), what, _one_of(names))
        if branch.max_iterations is not None and branch.max_iterations < 1:
            what = f"next.max_iterations is {branch.max_iterations}"
            yield Problem(at("next", "max_iterations"), what, "a whole number from 1")
    elif branch is not None and branch not in names:
        yield Problem(at("next"), f"next is {branch!r}, which is no step", _one_of(names))


def _command_problems(
    step: WorkflowStep, definition: WorkflowDefinition, at: Callable[..., str]
) -> Iterator[Problem]:
    command = step.command
    if command is not None and step.prompt:
        yield Problem(at("prompt"), "has a command and a prompt", "one of them")
    if command is None and not step.prompt and step.human_gate is None:
        yield Problem(at(), f"step {step.name!r} does nothing", "a command, a prompt or a gate")
    if isinstance(command, str) and command not in definition.commands:
        if _PLACE.fullmatch(command) is None:
            known = ", ".join(definition.commands) or "none"
            yield Problem(at("command"), f"no command is called {command!r}", f"there is: {known}")
        else:
            yield from _import_problems(command, at("command"))
    elif isinstance(command, Sequence) and not isinstance(command, str) and not command:
        yield Problem(at("command"), "the command is empty", "a program and its arguments")


def _import_problems(place: str, where: str) -> Iterator[Problem]:
    try:
        found = _imported(place)
    except Exception as error:  # noqa: BLE001  # a module may raise anything while it is imported
        said = f"{type(error).__name__}: {error}"
        yield Problem(where, f"the command {place!r} cannot be loaded: {said}")
        return
    if not callable(found):
        yield Problem(where, f"the command {place!r} is no function")


def _check_problems(check: Any, where: str) -> Iterator[Problem]:
    if callable(check):
        return
    if not isinstance(check, str):
        yield Problem(where, f"is {check!r:.60}", "a function, or an expression")
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
        if option.next_step is not None and option.next_step not in names:
            where = at("human_gate", "options", place, "next_step")
            what = f"option {option.label!r} leads to {option.next_step!r}, which is no step"
            yield Problem(where, what, _one_of(names))


def resolved(definition: WorkflowDefinition) -> WorkflowDefinition:
    """Puts functions in the place of their names."""
    steps = []
    for step in definition.steps:
        command = step.command
        if isinstance(command, str):
            command = definition.commands.get(command) or _imported(command)
        steps.append(replace(step, command=command))
    return replace(definition, steps=tuple(steps))


def _imported(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def read_definition(
    raw: Mapping[str, Any], problems: list[Problem], at: At | None = None
) -> WorkflowDefinition | None:
    """Reads a definition given as a dict; what is wrong with its shape goes to `problems`."""
    reader = _Reader(problems, at or _spelled)
    return reader.definition(raw)


class _Reader:
    """Turns dicts into the types of the model, and remembers every mistake."""

    def __init__(self, problems: list[Problem], at: At) -> None:
        self._problems = problems
        self._at = at

    def definition(self, raw: Mapping[str, Any]) -> WorkflowDefinition | None:
        said = self._known(raw, WorkflowDefinition, (), {"version"})
        if said is None:
            return None
        said.pop("version", None)
        steps = said.get("steps")
        if not isinstance(steps, list | tuple):
            self._wrong(("steps",), "there is no list of steps", "steps: [...]")
            return None
        said["steps"] = tuple(
            step
            for index, each in enumerate(steps)
            if (step := self._step(each, ("steps", index))) is not None
        )
        if said.get("database") is not None:
            said["database"] = self._database(said["database"])
        if isinstance(said.get("limits"), Mapping):
            said["limits"] = self._limits(said["limits"])
        if not isinstance(said.get("type"), str):
            self._wrong(("type",), "there is no type", "a short name such as w1_editing")
            return None
        return WorkflowDefinition(**said)

    def _step(self, raw: Any, path: tuple[str | int, ...]) -> WorkflowStep | None:
        said = self._known(raw, WorkflowStep, path)
        if said is None:
            return None
        if not isinstance(said.get("name"), str):
            self._wrong(path, "a step has no name", "name: ...")
            return None
        for key in ("preconditions", "postconditions"):
            said[key] = self._conditions(said.get(key) or (), (*path, key))
        if isinstance(said.get("next"), Mapping):
            said["next"] = self._made(said["next"], ConditionalNext, (*path, "next"))
        if said.get("human_gate") is not None:
            said["human_gate"] = self._gate(said["human_gate"], (*path, "human_gate"))
        self._texts(said, ("agent", "prompt", "title", "parallel_key"), path)
        return WorkflowStep(**said)

    def _conditions(self, raw: Any, path: tuple[str | int, ...]) -> tuple[Condition, ...]:
        if not isinstance(raw, list | tuple):
            self._wrong(path, f"is {raw!r:.60}", "a list of conditions")
            return ()
        found = (self._condition(each, (*path, index)) for index, each in enumerate(raw))
        return tuple(each for each in found if each is not None)

    def _condition(self, raw: Any, path: tuple[str | int, ...]) -> Condition | None:
        if isinstance(raw, str):
            return Condition(raw, raw)
        return self._made(raw, Condition, path)

    def _gate(self, raw: Any, path: tuple[str | int, ...]) -> HumanGate | None:
        said = self._known(raw, HumanGate, path)
        if said is None:
            return None
        options = said.get("options")
        listed = options if isinstance(options, list | tuple) else ()
        made = (
            self._made(each, GateOption, (*path, "options", index), {"next_step": None})
            for index, each in enumerate(listed)
        )
        said["options"] = tuple(each for each in made if each is not None)
        if not isinstance(said.get("prompt"), str):
            self._wrong(path, "a gate has no prompt", "prompt: ...")
            return None
        return HumanGate(**said)

    def _database(self, raw: Any) -> Database | None:
        if isinstance(raw, str):
            return Database(raw)
        return self._made(raw, Database, ("database",))

    def _limits(self, raw: Mapping[str, Any]) -> Limits:
        try:
            return Limits.from_json(raw)
        except ValueError as error:
            self._wrong(("limits",), str(error))
            return Limits()

    def _made(
        self,
        raw: Any,
        kind: type[T],
        path: tuple[str | int, ...],
        defaults: Mapping[str, Any] | None = None,
    ) -> T | None:
        said = self._known(raw, kind, path)
        if said is None:
            return None
        try:
            return kind(**{**(defaults or {}), **said})
        except TypeError as error:
            missing = str(error).rpartition(":")[2].strip()
            self._wrong(path, f"lacks {missing}")
            return None

    def _known(
        self,
        raw: Any,
        kind: type[Any],
        path: tuple[str | int, ...],
        also: set[str] | None = None,
    ) -> dict[str, Any] | None:
        """Returns a mapping under our own names; keys nobody knows are mistakes."""
        if not isinstance(raw, Mapping):
            self._wrong(path, f"is {raw!r:.60}", "keys and values")
            return None
        names = {field.name for field in fields(kind)} | (also or set())
        said: dict[str, Any] = {}
        for key, value in raw.items():
            name = _CAMEL.sub(r"_\1", str(key)).lower()
            if name not in names:
                self._wrong((*path, str(key)), f"unknown key {key!r}", _one_of(sorted(names)))
            elif value is not None:
                said[name] = value
        return said

    def _texts(
        self, said: Mapping[str, Any], names: Sequence[str], path: tuple[str | int, ...]
    ) -> None:
        for name in names:
            if name in said and not isinstance(said[name], str):
                self._wrong((*path, name), f"{name} is {said[name]!r:.60}", "a text")

    def _wrong(self, path: tuple[str | int, ...], what: str, remedy: str = "") -> None:
        self._problems.append(Problem(self._at(path), what, remedy))


def _by_name(definition: WorkflowDefinition) -> At:
    """Says where something stands by the step's name, where there is no file to point into."""

    def at(path: tuple[str | int, ...]) -> str:
        match path:
            case ("steps", int() as index, *rest):
                return _spelled((f"step {definition.steps[index].name!r}", *rest))
            case _:
                return _spelled(path)

    return at


def _spelled(path: tuple[str | int, ...]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
    return text or "workflow"


def _one_of(names: Sequence[str]) -> str:
    return f"one of: {', '.join(names)}"
