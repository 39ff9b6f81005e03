"""Reads definitions, from files and from Python, with one model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from pydantic import BaseModel, ValidationError

from signoff.contracts.contract_file import (
    ConditionSection,
    ContractFile,
    DatabaseSection,
    GateOptionSection,
    GateSection,
    NextSection,
    PythonDefinition,
    PythonStep,
    StepSection,
)
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
from signoff.documents.mistakes import Mistake, Path, mistakes_of
from signoff.documents.pruning import without_paths
from signoff.documents.sections import LimitsSection

At = Callable[[Path], str]
"""Returns where in the author's text something is."""

_TYPES: Mapping[type[BaseModel], type[Any]] = {
    ConditionSection: Condition,
    ContractFile: WorkflowDefinition,
    DatabaseSection: Database,
    GateOptionSection: GateOption,
    GateSection: HumanGate,
    LimitsSection: Limits,
    NextSection: ConditionalNext,
    PythonDefinition: WorkflowDefinition,
    PythonStep: WorkflowStep,
    StepSection: WorkflowStep,
}

_FOREIGN = frozenset({"schema", "commands", "roles"})
"""Below these keys are names that are not ours to change."""

_CAMEL = re.compile(r"(?<=[a-z0-9])([A-Z])")


def read_definition(
    raw: dict[str, Any], model: type[ContractFile]
) -> tuple[WorkflowDefinition | None, list[Mistake]]:
    """Returns the definition, and every mistake in its shape.

    With mistakes, the definition lacks what is wrong and is only good for finding more problems.
    """
    mistakes: list[Mistake] = []
    while True:
        try:
            return _typed(model.model_validate(raw, strict=True), raw), mistakes
        except ValidationError as error:
            found = mistakes_of(error, model)
        # What is missing after a wrong value was left out is no mistake of the author.
        mistakes = mistakes or found
        if any(_shapes_the_workflow(mistake.path) for mistake in found):
            # Without the steps, nothing can be said about how they fit together.
            return None, mistakes
        raw = without_paths(raw, [mistake.path for mistake in found])


def _shapes_the_workflow(path: Path) -> bool:
    return path[:1] in (("type",), ("steps",)) and (len(path) < 3 or path[2] == "name")


def _typed(value: Any, raw: Any) -> Any:
    """Returns what was read as the public types, with their defaults for what is not set.

    Values are used as written: the model turns `5` into `5.0`, which would change the digest
    of the definition.
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


def plain(node: Any, *, drop_empty: bool = False) -> Any:
    """Returns a definition as plain data with our spelling of keys: `initial_step`.

    `drop_empty` leaves out keys whose value is None, which means the default in Python.
    """
    if kind := next((each for each in _TYPES.values() if isinstance(node, each)), None):
        node = {field.name: getattr(node, field.name) for field in fields(kind)}
    if isinstance(node, list | tuple):
        return [plain(each, drop_empty=drop_empty) for each in node]
    if not isinstance(node, Mapping):
        return node
    return {
        our_name(str(key)): value if key in _FOREIGN else plain(value, drop_empty=drop_empty)
        for key, value in node.items()
        if value is not None or not drop_empty
    }


def our_name(key: str) -> str:
    """Returns a key in snake case, however it is written."""
    return _CAMEL.sub(r"_\1", key).lower() if _CAMEL.search(key) else key
