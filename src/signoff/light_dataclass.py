"""Dataclasses that cost little to define.

Before Python 3.13, `@dataclass(frozen=True)` compiles six methods for each class. That takes
half a millisecond, and a command defines about a hundred and fifty classes before it starts to
work. `@light_dataclass` compiles only `__init__` and builds the other methods without a compiler.
`@frozen_dataclass` also compiles the two methods that refuse changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(field_specifiers=(field,))
def light_dataclass(*, frozen: bool = False, slots: bool = False) -> Callable[[type[T]], type[T]]:
    """Returns a decorator that makes a class a dataclass, which is equal and prints like any other.

    Only type checkers enforce `frozen`. At run time it adds a hash, but assignments are not
    refused: use `frozen_dataclass` for what the code of users gets.
    """

    return _decorator(dataclass(repr=False, eq=False, slots=slots), hashable=frozen)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen_dataclass(*, slots: bool = False, kw_only: bool = False) -> Callable[[type[T]], type[T]]:
    """Returns a decorator like `dataclass(frozen=True)`, for what the code of users gets."""
    options = {"slots": slots, "kw_only": kw_only}
    return _decorator(dataclass(repr=False, eq=False, frozen=True, **options), hashable=True)


def _decorator(
    define: Callable[[type[T]], type[T]], *, hashable: bool
) -> Callable[[type[T]], type[T]]:
    def decorate(cls: type[T]) -> type[T]:
        made = define(cls)
        for name, method in _methods(made, hashable=hashable).items():
            # Like `dataclass`, keep the methods that the class defines itself.
            if name not in vars(cls):
                setattr(made, name, method)
        return made

    return decorate


def _methods(cls: type[Any], *, hashable: bool) -> dict[str, Any]:
    key = _key(cls)

    def equals(self: object, other: object) -> bool:
        return key(self) == key(other) if type(other) is type(self) else NotImplemented

    def hash_of(self: object) -> int:
        return hash(key(self))

    return {"__repr__": _repr, "__eq__": equals, "__hash__": hash_of if hashable else None}


def _key(cls: type[Any]) -> Callable[[object], object]:
    """Returns what reads the fields that are compared."""
    names = [each.name for each in fields(cls) if each.compare]
    return attrgetter(*names) if names else lambda _: ()


@recursive_repr()
def _repr(self: Any) -> str:
    shown = [f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"
