"""A flow as plain data, as runs store it, and back.

Every field is written, whether or not it has its default, so that a later release with
other defaults reads an old run as it was. Mappings become lists of pairs: the order of
patterns matters, and the keys of a JSON object may be sorted.

The form is part of the digest of every recorded definition: another one would make every run
under way look changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from pydantic import BaseModel

from signoff.flows.model import GenflowConfig
from signoff.review.constraint import ConstraintBehavior


def config_to_json(config: GenflowConfig) -> dict[str, Any]:
    """Returns a flow as plain data; equal flows give equal data."""
    stored: dict[str, Any] = _plain(config)
    stored["constraints"]["inline"] = _pairs(stored["constraints"]["inline"])
    stored["default_behavior"] = stored["default_behavior"]["by_severity"]
    behaviors = stored["constraint_behaviors"]
    stored["constraint_behaviors"] = [[key, each["by_severity"]] for key, each in behaviors.items()]
    return stored


def config_from_json(raw: Mapping[str, Any]) -> GenflowConfig:
    """Reads the result of `config_to_json`."""
    constraints = {**raw["constraints"], "inline": dict(raw["constraints"]["inline"])}
    read = ConstraintBehavior.from_dict
    stored = {
        **raw,
        "constraints": constraints,
        "default_behavior": read(raw["default_behavior"]),
        "constraint_behaviors": {name: read(each) for name, each in raw["constraint_behaviors"]},
    }
    return GenflowConfig.model_validate(stored, strict=False)


def _plain(value: Any) -> Any:
    # Not `model_dump`, which would build a serializer for the whole flow to use it once.
    if isinstance(value, BaseModel):
        return {name: _plain(each) for name, each in value}
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return value.value if isinstance(value, Enum) else value


def _pairs(mapping: Mapping[str, Any]) -> list[list[Any]]:
    return [[key, value] for key, value in mapping.items()]
