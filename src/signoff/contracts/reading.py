"""Reads definitions given as dicts into the types of the model; every mistake is remembered."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from signoff.contracts.model import (
    Condition,
    ConditionalNext,
    Database,
    GateOption,
    HumanGate,
    WorkflowDefinition,
    WorkflowStep,
    as_condition,
)
from signoff.core.spend import Limits
from signoff.errors import Problem

T = TypeVar("T")
Kinds = tuple[type, ...]

_CAMEL = re.compile(r"(?<=[a-z0-9])([A-Z])")

At = Callable[[tuple[str | int, ...]], str]
"""Says where in the author's text something stands."""

_TEXT: tuple[Kinds, str] = ((str,), "a text")
_SWITCH: tuple[Kinds, str] = ((bool,), "true or false")
_COUNT: tuple[Kinds, str] = ((int,), "a whole number")
_VALUES: Mapping[str, tuple[Kinds, str]] = {
    **dict.fromkeys(("name", "title", "description", "type", "initial_step", "folder"), _TEXT),
    **dict.fromkeys(("prompt", "agent", "model", "parallel_key", "error"), _TEXT),
    **dict.fromkeys(("on_true", "on_false", "label", "next_step", "url", "backups"), _TEXT),
    **dict.fromkeys(("parallel", "requires_input", "backup"), _SWITCH),
    **dict.fromkeys(("max_iterations", "keep"), _COUNT),
    "timeout": ((int, float), "a number of seconds"),
    "schema": ((Mapping,), "a JSON Schema"),
    "roles": ((Mapping,), "agents by role"),
    "limits": ((Mapping, Limits), "usd, tokens, calls and seconds"),
    "params": ((list, tuple), "a list of names"),
    "commands": ((Mapping,), "functions by name"),
    "context": ((list, tuple), "a list of names"),
    "options": ((list, tuple), "a list of options"),
    "ends": ((str,), "completed or rejected"),
}
"""What a value must be, by its key; a key means the same wherever it stands."""

_FILE_KEYS = {"version", "notation"}
"""Keys that say how a file is read, and nothing about the workflow."""


def read_definition(
    raw: Mapping[str, Any], problems: list[Problem], at: At | None = None
) -> WorkflowDefinition | None:
    """Reads a definition given as a dict; what is wrong with its shape goes to `problems`."""
    reader = _DefinitionReader(problems, at or spelled)
    return reader.definition(raw)


class _DefinitionReader:
    """Turns dicts into the types of the model, and remembers every mistake."""

    def __init__(self, problems: list[Problem], at: At) -> None:
        self._problems = problems
        self._at = at

    def definition(self, raw: Mapping[str, Any]) -> WorkflowDefinition | None:
        said = self._known(raw, WorkflowDefinition, (), _FILE_KEYS)
        if said is None:
            return None
        said = {key: value for key, value in said.items() if key not in _FILE_KEYS}
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
        if isinstance(raw, WorkflowStep):
            return raw
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
        return WorkflowStep(**said)

    def _conditions(self, raw: Any, path: tuple[str | int, ...]) -> tuple[Condition, ...]:
        if not isinstance(raw, list | tuple):
            self._wrong(path, f"is {raw!r:.60}", "a list of conditions")
            return ()
        found = (self._condition(each, (*path, index)) for index, each in enumerate(raw))
        return tuple(each for each in found if each is not None)

    def _condition(self, raw: Any, path: tuple[str | int, ...]) -> Condition | None:
        return self._made(as_condition(raw), Condition, path)

    def _gate(self, raw: Any, path: tuple[str | int, ...]) -> HumanGate | None:
        if isinstance(raw, HumanGate):
            return raw
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
        if isinstance(raw, kind):
            return raw
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
                self._wrong((*path, str(key)), f"unknown key {key!r}", one_of(sorted(names)))
            elif value is not None:
                said[name] = value
        return self._held(said, path)

    def _held(self, said: dict[str, Any], path: tuple[str | int, ...]) -> dict[str, Any]:
        """Returns the values that are of the right kind; the others are mistakes."""
        right = {}
        for name, value in said.items():
            kinds, words = _VALUES.get(name, ((object,), ""))
            # True is an int to Python, and never meant as one.
            wrong = not isinstance(value, kinds) or (
                isinstance(value, bool) and bool not in kinds and object not in kinds
            )
            if wrong:
                self._wrong((*path, name), f"{name} is {value!r:.60}", words)
            else:
                right[name] = value
        return right

    def _wrong(self, path: tuple[str | int, ...], what: str, remedy: str = "") -> None:
        self._problems.append(Problem(self._at(path), what, remedy))


def spelled(path: tuple[str | int, ...]) -> str:
    """Returns a place as people write it: `steps[1].next`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
    return text or "workflow"


def one_of(names: Sequence[str]) -> str:
    """Says what would be right."""
    return f"one of: {', '.join(names)}"
