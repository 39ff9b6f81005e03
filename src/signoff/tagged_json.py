"""Closed unions of frozen dataclasses as JSON objects, told apart by a `kind`.

The kind is the class name in snake case, so a class in such a union is never renamed:
journals store it.
"""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_HUMP = re.compile(r"(?<!^)(?=[A-Z])")


class TaggedUnion(Generic[T]):
    """The classes of one union, and how its values are written and read."""

    def __init__(self, *kinds: type[T]) -> None:
        self._kinds = {kind_of(kind): kind for kind in kinds}

    def to_json(self, value: T) -> dict[str, Any]:
        """Returns a value as a JSON object; fields at their default are left out."""
        data: dict[str, Any] = {"kind": kind_of(type(value))}
        for each in fields(value):  # type: ignore[arg-type]  # every member is a dataclass
            item = getattr(value, each.name)
            if each.default is MISSING or item != each.default:
                data[each.name] = item
        return data

    def from_json(self, data: dict[str, Any]) -> T:
        """Reads a value back; raises `ValueError` for a kind that is not in the union."""
        # JSON has no tuples, and a frozen value must not hold a list.
        values = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
        kind = self._kinds.get(str(values.pop("kind", "")))
        if kind is None:
            raise ValueError(f"unknown kind {data.get('kind')!r}")
        return kind(**values)


def kind_of(kind: type[Any]) -> str:
    """Returns the word for a class: `raise_limit` for `RaiseLimit`."""
    return _HUMP.sub("_", kind.__name__).lower()
