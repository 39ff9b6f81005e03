"""A flow as plain data, as runs store it, and back.

Every field is written, whether or not it has its default, so that a later release with
other defaults reads an old run as it was. Mappings become lists of pairs: the order of
patterns matters, and the keys of a JSON object may be sorted.

The form differs from that of files in a few fields. It is part of the digest of every recorded
definition, so it stays as it is: another form would make every run under way look changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from pydantic import BaseModel

from signoff.core.requests import AnswerableBy
from signoff.flows.model import GenflowConfig, OutputConfig
from signoff.review.behaviors import ConstraintBehavior

_NEWER = ("prompts", "rereview", "max_findings", "verify", "artifact")
"""Keys that came later; without a value of their own they are left out, as they were before."""
_NEWER_OF_STEPS = ("deadline", "default", "presence")


def config_to_json(config: GenflowConfig) -> dict[str, Any]:
    """Returns a flow as plain data; equal flows give equal data."""
    stored: dict[str, Any] = _plain(config)
    for name in _NEWER:
        if stored[name] == GenflowConfig.model_fields[name].default:
            del stored[name]
    for step in stored["workflow"]:
        for name in (each for each in _NEWER_OF_STEPS if not step[each]):
            del step[name]
    if stored["output"]["write_back"] == OutputConfig.model_fields["write_back"].default:
        del stored["output"]["write_back"]
    if config.adjudication.answerable_by is AnswerableBy.HUMAN:
        del stored["adjudication"]["answerable_by"]
    constraints, goal, behaviors = stored["constraints"], stored["goal"], "constraint_behaviors"
    constraints["inline"] = _pairs(constraints["inline"])
    constraints["routing"]["priority_routing"] = [
        {"low": route.low, "high": route.high, "agents": list(route.agents)}
        for route in config.constraints.routing.priority_routing
    ]
    stored["default_behavior"] = _behavior(config.default_behavior)
    stored[behaviors] = _pairs({k: _behavior(v) for k, v in config.constraint_behaviors.items()})
    stored["goal"] = {"text": goal["goal"], "source": goal["source"]} if goal else None
    return stored


def config_from_json(raw: Mapping[str, Any]) -> GenflowConfig:
    """Reads the result of `config_to_json`, also that of older releases with fewer fields."""
    stored = dict(raw)
    constraints = dict(stored.get("constraints", {}))
    routing = dict(constraints.get("routing", {}))
    routing["priority_routing"] = [
        {"range": [route["low"], route["high"]], "agents": route["agents"]}
        for route in routing.get("priority_routing", ())
    ]
    stored["constraints"] = {
        **constraints,
        "inline": dict(constraints.get("inline", ())),
        "routing": routing,
    }
    stored["default_behavior"] = _read_behavior(stored.get("default_behavior", {}))
    stored["constraint_behaviors"] = {
        pattern: _read_behavior(each) for pattern, each in stored.get("constraint_behaviors", ())
    }
    if goal := stored.get("goal"):
        stored["goal"] = {"goal": goal["text"], "source": goal["source"]}
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


def _behavior(behavior: ConstraintBehavior) -> dict[str, Any]:
    return {"by_severity": [[key.value, each.value] for key, each in behavior.by_severity.items()]}


def _read_behavior(stored: Mapping[str, Iterable[tuple[str, str]]]) -> ConstraintBehavior:
    return ConstraintBehavior.from_dict(dict(stored.get("by_severity", ())))
