"""Makes the schemas from the models that read the files, so that editor and program agree."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from signoff.flows.constraint_file import ConstraintFile
from signoff.flows.flow_file import FlowFile
from signoff.flows.genloop_file import GenloopFile
from signoff.flows.goal_file import GoalFile

_MODELS: Mapping[str, tuple[type[BaseModel], str]] = {
    "flow.schema.json": (FlowFile, "signoff flow"),
    "genloop.schema.json": (GenloopFile, "signoff flow without its own steps"),
    "constraint.schema.json": (ConstraintFile, "signoff constraint"),
    "goal.schema.json": (GoalFile, "signoff goal"),
}
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, str]:
    """Returns the text of every schema by the name of its file."""
    return {name: _text(model, title) for name, (model, title) in _MODELS.items()}


def _text(model: type[BaseModel], title: str) -> str:
    made = model.model_json_schema()
    whole = {"$schema": _DIALECT, **made, "title": title}
    return json.dumps(_told(whole), indent=2, ensure_ascii=False) + "\n"


def _told(node: Any) -> Any:
    """Puts what a field is for before what is valid there: editors show one description."""
    if isinstance(node, list):
        return [_told(each) for each in node]
    if not isinstance(node, dict):
        return node
    told = {key: _told(each) for key, each in node.items()}
    return {**told, "properties": _fields(told["properties"])} if "properties" in told else told


def _fields(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _field(said) for name, said in properties.items()}


def _field(said: Mapping[str, Any]) -> dict[str, Any]:
    purpose, valid = said.get("title", ""), said.get("description", "")
    rest = {key: value for key, value in said.items() if key != "title"}
    return {**rest, "description": f"{purpose}. {valid[:1].upper()}{valid[1:]}."}
