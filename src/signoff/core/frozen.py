"""Read-only JSON values.

Handlers see the run's state through these, so a handler that changes a list in
place is told so at once, instead of leaving a state the journal knows nothing of.
They are real lists and dicts: they print, compare, iterate and serialise as such,
and `[*value, more]` or `{**value, "k": 1}` make ordinary copies.
"""

from __future__ import annotations

from typing import Any, NoReturn, Self


def _refuse(self: object, *_args: object, **_kwargs: object) -> NoReturn:
    raise TypeError(
        "the state a handler sees is read-only; return the new value in its update instead"
    )


class FrozenList(list[Any]):
    """A list nobody changes; a copy of it is an ordinary list."""

    __slots__ = ()
    append = extend = insert = pop = remove = clear = sort = reverse = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __deepcopy__(self, _memo: object) -> list[Any]:
        """Gives an ordinary, changeable list."""
        return [thaw(v) for v in self]

    def __reduce__(self) -> tuple[type[list[Any]], tuple[list[Any]]]:
        """Pickles as an ordinary list."""
        return list, (list(self),)


class FrozenDict(dict[str, Any]):
    """A dict nobody changes; a copy of it is an ordinary dict."""

    __slots__ = ()
    pop = popitem = clear = update = setdefault = _refuse
    __setitem__ = __delitem__ = _refuse

    def __ior__(self, _other: object) -> Self:  # type: ignore[override,misc]  # narrower on purpose
        """Refuses `|=` like every other change."""
        _refuse(self)

    def __deepcopy__(self, _memo: object) -> dict[str, Any]:
        """Gives an ordinary, changeable dict."""
        return {k: thaw(v) for k, v in self.items()}

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        """Pickles as an ordinary dict."""
        return dict, (dict(self),)


def freeze(value: Any) -> Any:
    """Returns the same JSON value, read-only all the way down."""
    kind = type(value)
    if kind is list or kind is tuple:
        return FrozenList([freeze(v) for v in value])
    if kind is dict:
        return FrozenDict({k: freeze(v) for k, v in value.items()})
    return value


def thaw(value: Any) -> Any:
    """Returns the same JSON value as ordinary lists and dicts."""
    if isinstance(value, list):
        return [thaw(v) for v in value]
    if isinstance(value, dict):
        return {k: thaw(v) for k, v in value.items()}
    return value
