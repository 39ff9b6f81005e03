"""Base models and sections that several file formats share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

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
