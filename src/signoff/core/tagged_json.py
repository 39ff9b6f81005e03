"""Closed sets of values that are stored as JSON objects with a `kind`.

The kind is the class name in snake case. Journals store it, so no class of such a set may be
renamed.
"""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from _typeshed import DataclassInstance as Dataclass
else:
    Dataclass = object

_WORD_START = re.compile(r"(?<!^)(?=[A-Z])")


class Tagged(Dataclass):
    """The base of a set: a direct subclass opens the set, the dataclasses below are its members."""

    kinds: ClassVar[dict[str, type[Any]]]

    def __init_subclass__(cls) -> None:
        if Tagged in cls.__bases__:
            cls.kinds = {}
        else:
            cls.kinds[snake_case(cls.__name__)] = cls

    def to_json(self) -> dict[str, Any]:
        """Returns a value as a JSON object; fields at their default are left out."""
        values = {each.name: (getattr(self, each.name), each.default) for each in fields(self)}
        changed = {
            name: value
            for name, (value, default) in values.items()
            if default is MISSING or value != default
        }
        return {"kind": snake_case(type(self).__name__), **changed}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Reads a value back; raises `ValueError` for a kind that is not in the set."""
        # JSON has no tuples, and a frozen value must not hold a list.
        values = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
        member = cls.kinds.get(str(values.pop("kind", "")))
        if member is None:
            raise ValueError(f"unknown kind {data.get('kind')!r}")
        value: Self = member(**values)
        return value


def snake_case(name: str) -> str:
    """Returns `raise_limit` for `RaiseLimit`."""
    return _WORD_START.sub("_", name).lower()
