"""Reads definitions from files and from Python with the same models."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from pydantic import BaseModel, ValidationError

from signoff.contracts import contract_file, model
from signoff.contracts.contract_file import ContractFile
from signoff.contracts.model import WorkflowDefinition
from signoff.core.spend import Limits
from signoff.documents.mistakes import Mistake, Path, mistakes_of
from signoff.documents.pruning import without_paths
from signoff.documents.sections import LimitsSection

Locate = Callable[[Path], str]
"""Returns the location of a key, as in `file:line`."""

_TYPES: Mapping[type[BaseModel], type[Any]] = {
    contract_file.ConditionSection: model.Condition,
    contract_file.ContractFile: model.WorkflowDefinition,
    contract_file.DatabaseSection: model.Database,
    contract_file.GateOptionSection: model.GateOption,
    contract_file.GateSection: model.HumanGate,
    contract_file.NextSection: model.ConditionalNext,
    contract_file.PythonDatabase: model.Database,
    contract_file.PythonDefinition: model.WorkflowDefinition,
    contract_file.PythonStep: model.WorkflowStep,
    contract_file.StepSection: model.WorkflowStep,
    LimitsSection: Limits,
}
"""The public type for each section of a definition."""

_FOREIGN = frozenset({"schema", "commands", "roles", "values"})
"""Keys whose values have the author's own keys, which stay as they are."""

_CAMEL = re.compile(r"(?<=[a-z0-9])([A-Z])")


def read_definition(
    raw: dict[str, Any], shape: type[ContractFile]
) -> tuple[WorkflowDefinition | None, list[Mistake]]:
    """Returns the definition, and every mistake in its shape.

    With mistakes, the definition lacks the invalid values and only serves to find more problems.
    """
    mistakes: list[Mistake] = []
    while True:
        try:
            return _typed(shape.model_validate(raw, strict=True), raw), mistakes
        except ValidationError as error:
            found = mistakes_of(error, shape)
        # A key that is missing because its invalid value was removed is not a mistake.
        mistakes = mistakes or found
        if any(_is_essential(mistake.path) for mistake in found):
            # Whether steps fit together can only be checked if all of them are there.
            return None, mistakes
        raw = without_paths(raw, [mistake.path for mistake in found])


def _is_essential(path: Path) -> bool:
    return path[:1] in (("type",), ("steps",)) and (len(path) < 3 or path[2] == "name")


def _typed(value: Any, raw: Any) -> Any:
    """Returns a value of the model as the public type, with its defaults for missing keys.

    Plain values are taken from `raw`: the model turns `5` into `5.0`, which would change the
    digest of the definition.
    """
    if isinstance(value, list):
        return tuple(_typed(*pair) for pair in zip(value, raw, strict=True))
    kind = _TYPES.get(type(value))
    if kind is None:
        return raw
    raw = raw if isinstance(raw, dict) else {"url": raw}
    known = {field.name for field in fields(kind)}
    names = {field.alias or name: name for name, field in type(value).model_fields.items()}
    return kind(
        **{
            key: _typed(getattr(value, names[key]), each)
            for key, each in raw.items()
            if key in known and each is not None
        }
    )


def to_plain_values(node: Any, *, drop_empty: bool = False) -> Any:
    """Returns a definition as plain values, with keys in snake case.

    `drop_empty` removes keys whose value is None, which means the default in Python.
    """
    # A subclass of the user may have more fields, so the fields of our own type are read. Those
    # that are not compared are found while the definition is read.
    if kind := next((each for each in _TYPES.values() if isinstance(node, each)), None):
        node = {each.name: getattr(node, each.name) for each in fields(kind) if each.compare}
    if isinstance(node, list | tuple):
        return [to_plain_values(each, drop_empty=drop_empty) for each in node]
    if not isinstance(node, Mapping):
        return node
    return {
        snake_case(str(key)): (
            value if key in _FOREIGN else to_plain_values(value, drop_empty=drop_empty)
        )
        for key, value in node.items()
        if value is not None or not drop_empty
    }


def snake_case(key: str) -> str:
    """Returns a key in snake case; `Name` stays as it is and is rejected as unknown."""
    return _CAMEL.sub(r"_\1", key).lower() if _CAMEL.search(key) else key
