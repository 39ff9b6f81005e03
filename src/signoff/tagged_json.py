"""Closed sets of values that are stored as JSON objects with a `kind`.

The kind is the class name in snake case. Journals store it, so no class of such a set may be
renamed.
"""

from __future__ import annotations

import re
from inspect import get_annotations
from typing import Any, ClassVar, Self, dataclass_transform

_WORD_START = re.compile(r"(?<!^)(?=[A-Z])")


@dataclass_transform(frozen_default=True)
class Tagged:
    """The base of a set: a direct subclass opens the set, the classes below it are its members.

    Members are written like frozen dataclasses, but no code is generated for them. Python spends
    half a millisecond on each dataclass, and there are fifty members that every command would
    have to wait for.
    """

    kinds: ClassVar[dict[str, type[Any]]]
    __match_args__: ClassVar[tuple[str, ...]] = ()
    """The names of the fields, in order."""

    def __init_subclass__(cls) -> None:
        if Tagged in cls.__bases__:
            cls.kinds = {}
        else:
            names = tuple(dict.fromkeys((*cls.__match_args__, *get_annotations(cls))))
            cls.__match_args__ = names  # type: ignore[misc]  # mypy derives it from the fields
            cls.kinds[snake_case(cls.__name__)] = cls

    def __init__(self, *args: Any, **values: Any) -> None:
        names = self.__match_args__
        values.update(zip(names, args, strict=False))
        missing = [name for name in names if name not in values and not hasattr(self, name)]
        unknown = sorted(values.keys() - set(names))
        if missing or unknown or len(args) > len(names):
            raise TypeError(f"{type(self).__name__}: missing {missing}, unknown {unknown}")
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; use replaced()")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), *self._values().values()))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self._values().items())
        return f"{type(self).__name__}({fields})"

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__match_args__}

    def replaced(self, **changes: Any) -> Self:
        """Returns a copy with some fields changed."""
        return type(self)(**(self._values() | changes))

    def to_json(self) -> dict[str, Any]:
        """Returns a value as a JSON object; fields at their default are left out."""
        required = object()
        changed = {
            name: value
            for name, value in self._values().items()
            if value != getattr(type(self), name, required)
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
