"""Makes the JSON Schema of a file from the model that reads it, so that both agree."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_text(model: type[BaseModel], title: str) -> str:
    """Returns the text of a model's schema."""
    whole = {"$schema": _DIALECT, **model.model_json_schema(), "title": title}
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
