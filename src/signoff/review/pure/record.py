"""Values that are stored as JSON: in the journal, in the run directory and with a definition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from functools import cache
from types import NoneType
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
        own, left_out = vars(self), self.omit_empty
        values = {}
        for name in _names(type(self)):  # type: ignore[arg-type]  # as below
            value = own[name]
            if value or name not in left_out:
                values[name] = value if type(value) in _AS_THEY_ARE else _plain(value)
        return values

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Reads what `to_json` wrote; keys that are not fields are ignored."""
        adapter = _adapter(cls)  # type: ignore[arg-type]  # mypy takes the class for unhashable
        record: Self = adapter.validate_python(raw)
        return record


_AS_THEY_ARE = frozenset({str, int, bool, float, NoneType})


@cache
def _names(record: type[Record]) -> tuple[str, ...]:
    return tuple(each.name for each in fields(record))


@cache
def _adapter(record: type[Record]) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(record)


def _plain(value: object) -> Any:
    # The most frequent kinds first: a review writes thousands of findings, several times.
    match value:
        case Enum():
            return value.value
        case tuple():
            return [each if type(each) in _AS_THEY_ARE else _plain(each) for each in value]
        case Record():
            return value.to_json()
        case Mapping():
            return dict(value)
        case _:
            return value
