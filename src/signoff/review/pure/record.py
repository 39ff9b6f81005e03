"""Values that are stored as JSON: in the journal, in the run directory and with a definition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@dataclass(frozen=True)
class Record:
    """A dataclass that can be written as JSON values and read again."""

    omit_empty: ClassVar[frozenset[str]] = frozenset()
    """Fields that are left out if they are empty; all others are always written."""

    def to_json(self) -> dict[str, Any]:
        """Returns it as JSON values."""
        values = {each.name: _plain(getattr(self, each.name)) for each in fields(self)}
        return {k: v for k, v in values.items() if v or k not in self.omit_empty}

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
        case Enum():
            return value.value
        case tuple():
            return [_plain(each) for each in value]
        case Record():
            return value.to_json()
        case Mapping():
            return dict(value)
        case _:
            return value
