"""The parts that files of several kinds have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

AMOUNT = "a number of at least 0"
WHOLE_AMOUNT = "a whole number of at least 0"


class Section(BaseModel):
    """A mapping in which every key has to be known.

    A field's description says what is valid there, and stands in complaints; its title
    says what the field is for, and stands in the schema beside it.
    """

    model_config = ConfigDict(extra="forbid")

    misplaced_keys: ClassVar[Mapping[str, str]] = {}
    """Keys that are right in another place, and what to say of them."""


class FileSection(Section):
    """What stands at the top of a file: a key with nothing behind it says nothing there.

    `limits:` stands alone when everything below it is commented out.
    """

    @model_validator(mode="before")
    @classmethod
    def _empty_keys_say_nothing(cls, raw: Any) -> Any:
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
