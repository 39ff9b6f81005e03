"""Read-only JSON values.

Handlers see the run's state as these values. A handler that changes a list in place gets an error
at once; otherwise the state would differ from what the journal recorded. They are real lists and
dicts: they print, compare, iterate and serialize as such, and `[*value, more]` or
`{**value, "k": 1}` are ordinary copies.
"""

from __future__ import annotations

import math
from types import MappingProxyType, NoneType
from typing import Any, NoReturn, Self

from signoff.core.errors import NotSerialisable

DEPTH = 100
"""How deep lists and dicts may be nested; far below the limit of Python itself."""

STORED_DEPTH = DEPTH + 20
"""The same, including the event that a value is recorded in."""

CHECKPOINT_DEPTH = STORED_DEPTH + 20
"""The same, including the state that collects such values, so that a recorded value always fits."""

_SMALL = 2**63
_LARGE = 10**4000
"""Python refuses to parse a number with more digits than about this."""


def _refuse(_self: object, *_args: object, **_kwargs: object) -> NoReturn:
    raise TypeError(
        "workflows, parameters and the state that a handler sees are read-only; return the new "
        "value in its update instead"
    )


class FrozenList(list[Any]):
    """A read-only list; a copy of it is an ordinary list."""

    __slots__ = ()
    append = extend = insert = pop = remove = clear = sort = reverse = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __deepcopy__(self, _memo: object) -> list[Any]:
        """Returns an ordinary list that can be changed."""
        return [thaw(v) for v in self]

    def __reduce__(self) -> tuple[type[list[Any]], tuple[list[Any]]]:
        """Pickles as an ordinary list."""
        return list, (list(self),)


class FrozenDict(dict[str, Any]):
    """A read-only dict; a copy of it is an ordinary dict."""

    __slots__ = ("memo",)
    memo: Any
    """A value that its reader has computed from it; it stays right, as this does not change."""
    pop = popitem = clear = update = setdefault = _refuse
    __setitem__ = __delitem__ = _refuse

    def __ior__(self, _other: object) -> Self:  # type: ignore[override,misc]  # narrower on purpose
        """Refuses `|=` like every other change."""
        _refuse(self)

    def __deepcopy__(self, _memo: object) -> dict[str, Any]:
        """Returns an ordinary dict that can be changed."""
        return {k: thaw(v) for k, v in self.items()}

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        """Pickles as an ordinary dict."""
        return dict, (dict(self),)


_SCALARS = frozenset({str, int, float, bool, NoneType})
_AS_THEY_ARE = frozenset({str, bool, NoneType, FrozenList, FrozenDict})
_LISTS = (list, tuple)
_NESTS = (dict, list, tuple)


def freeze(value: Any, levels: int = DEPTH) -> Any:
    """Returns the same JSON value, read-only all the way down.

    The result is what the journal would return: a tuple becomes a list and an enum member its
    value, so a step sees the same before and after a restart. A value that the journal could
    not return, such as a dict with numbers for keys, raises `NotSerialisable`.
    """
    # Exact types only: a subclass may print, compare or hash in its own way, and would be another
    # value after a restart.
    kind = type(value)
    if kind in _AS_THEY_ARE or (kind is int and -_LARGE < value < _LARGE):
        return value
    if isinstance(value, _NESTS) and not levels:
        raise NotSerialisable(f"a value is nested more than {DEPTH} levels deep, or in itself")
    if isinstance(value, dict):
        # Most values are scalars. Checking their kind here saves a call for each of them.
        frozen = {
            k if type(k) is str else as_key(k): v
            if (kind := type(v)) in _AS_THEY_ARE or (kind is int and -_SMALL < v < _SMALL)
            else freeze(v, levels - 1)
            for k, v in value.items()
        }
        return FrozenDict(frozen)
    if isinstance(value, _LISTS):
        return FrozenList([v if type(v) in _AS_THEY_ARE else freeze(v, levels - 1) for v in value])
    return _scalar(value)


def as_key(key: Any) -> str:
    """Returns a key of a dict as plain text, or raises `NotSerialisable`."""
    if isinstance(key, str):
        return str.__str__(key)
    raise NotSerialisable(f"the key {key!r:.80} of a dict is not a string; keys must be strings")


def read_only(value: Any) -> Any:
    """Returns the same value with read-only lists and dicts; unlike `freeze`, of any type."""
    if isinstance(value, dict | MappingProxyType):
        return FrozenDict({key: read_only(each) for key, each in value.items()})
    if type(value) is list:
        return FrozenList([read_only(each) for each in value])
    return value


def thaw(value: Any) -> Any:
    """Returns the same JSON value as ordinary lists and dicts."""
    # Most values are scalars. Checking their kind here saves a call for each of them.
    if isinstance(value, list):
        return [v if type(v) in _SCALARS else thaw(v) for v in value]
    if isinstance(value, dict):
        return {k: v if type(v) in _SCALARS else thaw(v) for k, v in value.items()}
    return value


def _scalar(value: Any) -> str | int | float:
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int) and -_LARGE < value < _LARGE:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    what = repr(value) if isinstance(value, float) else f"this {type(value).__name__}"
    raise NotSerialisable(
        f"{what} cannot be stored; use strings, finite numbers, booleans, None, lists and dicts"
    )
