"""What several file formats share: base models, sections, and how a JSON Schema is made of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
AMOUNT = "a number of at least 0"
WHOLE_AMOUNT = "a whole number of at least 0"


class Section(BaseModel):
    """A mapping that rejects unknown keys.

    A field's description says what is valid and appears in error messages. Its title says
    what the field is for and appears in the JSON Schema, before the description.
    """

    model_config = ConfigDict(extra="forbid", defer_build=True)

    misplaced_keys: ClassVar[Mapping[str, str]] = {}
    """Keys that belong in another section, and the advice to give about them."""


class FileSection(Section):
    """The top level of a file, where a key without a value counts as absent.

    `limits:` has no value when everything below it is commented out.
    """

    @model_validator(mode="before")
    @classmethod
    def _drop_empty_keys(cls, raw: Any) -> Any:
        if not isinstance(raw, dict):
            return raw
        return {k: v for k, v in raw.items() if v is not None or k not in cls.model_fields}


class LimitsSection(Section):
    """Ceilings for one run."""

    usd: float | None = Field(
        None, ge=0, allow_inf_nan=False, title="Dollars in all", description=AMOUNT
    )
    tokens: int | None = Field(None, ge=0, title="Tokens in all", description=WHOLE_AMOUNT)
    calls: int | None = Field(None, ge=0, title="Calls of agents", description=WHOLE_AMOUNT)
    seconds: float | None = Field(
        None, ge=0, allow_inf_nan=False, title="Seconds at work", description=AMOUNT
    )

    @field_validator("usd", "tokens", "calls", "seconds", mode="before")
    @classmethod
    def _is_plain(cls, value: Any) -> Any:
        # `1_000` is a number for Python, and a typing error for everybody else.
        if isinstance(value, str) and "_" in value:
            raise ValueError(value)
        return value


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
