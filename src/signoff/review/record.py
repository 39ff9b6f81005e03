"""Values that are stored as JSON: in the journal, in the run directory and with a definition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

from signoff.light_dataclass import frozen_dataclass

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@frozen_dataclass()
class Record:
    """A dataclass that can be written as JSON values and read again."""

    omit_empty: ClassVar[frozenset[str]] = frozenset()
    """Fields that are left out if they are empty; all others are always written."""

    def to_json(self) -> dict[str, Any]:
        """Returns it as JSON values."""
        values = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}
        return {k: value for k, value in values.items() if value or k not in self.omit_empty}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Reads what `to_json` wrote; keys that are not fields are ignored."""
        adapter = _adapter(cls)  # type: ignore[arg-type]  # mypy takes the class for unhashable
        record: Self = adapter.validate_python(raw)
        return record


@cache
def _adapter(record: type[Record]) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(record)


def _plain(value: object) -> Any:
    match value:
        case Record():
            return value.to_json()
        case Enum():
            return value.value
        case tuple():
            return [_plain(item) for item in value]
        case Mapping():
            return dict(value)
        case _:
            return value
