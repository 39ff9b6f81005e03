"""Generates the JSON Schema of a file format from the model that reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_text(model: type[BaseModel], title: str) -> str:
    """Returns a model's JSON Schema as text."""
    schema = {"$schema": _DIALECT, **model.model_json_schema(), "title": title}
    return json.dumps(_describe_fields(schema), indent=2, ensure_ascii=False) + "\n"


def _describe_fields(node: Any) -> Any:
    """Joins each field's title (its purpose) and description (what is valid) into one text.

    Editors show only the description.
    """
    if isinstance(node, list):
        return [_describe_fields(item) for item in node]
    if not isinstance(node, dict):
        return node
    schema = {key: _describe_fields(value) for key, value in node.items()}
    if "properties" in schema:
        fields = {name: _describe_field(field) for name, field in schema["properties"].items()}
        return {**schema, "properties": fields}
    return schema


def _describe_field(field: Mapping[str, Any]) -> dict[str, Any]:
    purpose, valid = field.get("title", ""), field.get("description", "")
    rest = {key: value for key, value in field.items() if key != "title"}
    return {**rest, "description": f"{purpose}. {valid[:1].upper()}{valid[1:]}."}
