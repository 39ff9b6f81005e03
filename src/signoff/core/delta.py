"""What a step changed, and nothing else.

A handler returns an update that is merged into the state. The journal stores only the difference:
keys with a new value, and for a list that only grew, its new tail. Without the tail, every step
that adds to a long list would store the whole list again.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_
from typing import Any

from signoff.core.frozen import FrozenDict, FrozenList, as_key, freeze
from signoff.errors import BadHandlerResult, NotSerialisable

_EMPTY = FrozenList()

Delta = dict[str, dict[str, Any]]
"""`{"set": {key: value}, "append": {key: [new items]}}`, either part absent when empty."""


class Append(list[Any]):
    """An update that adds items to a list without having to read it first."""


def diff(state: Mapping[str, Any], update: Mapping[str, Any]) -> Delta:
    """Returns what `update` changes in `state`, as read-only values."""
    put: dict[str, Any] = {}
    grown: dict[str, Any] = {}
    for name, new in update.items():
        key = as_key(name)
        old = state.get(key)
        if new is old and (old is not None or key in state):
            continue
        if type(new) is Append:
            if type(old) is not FrozenList and key in state:
                raise BadHandlerResult(
                    f"state {key!r} is not a list, so nothing can be appended to it"
                )
            grown[key] = _storable(key, new)
        elif type(old) is FrozenList and isinstance(new, list) and _extends(old, new):
            # Only the tail is frozen and stored, so a step does not pay for the whole list.
            if len(new) > len(old):
                grown[key] = _storable(key, new[len(old) :])
        else:
            put[key] = _storable(key, new)
    return {name: part for name, part in (("set", put), ("append", grown)) if part}


def apply(state: Mapping[str, Any], delta: Delta) -> FrozenDict:
    """Returns the state after a delta; unchanged values are shared, not copied."""
    if not delta and type(state) is FrozenDict:
        return state
    after = dict(state)
    for key, value in delta.get("set", {}).items():
        after[key] = freeze(value)
    for key, tail in delta.get("append", {}).items():
        # A new list, never the old one grown in place: another key may have the same list.
        after[key] = after.get(key, _EMPTY).followed_by(freeze(tail))
    return FrozenDict(after)


def _storable(key: str, value: Any) -> Any:
    try:
        return freeze(value)
    except NotSerialisable as error:
        raise NotSerialisable(f"state {key!r}: {error}") from None


def _extends(old: FrozenList, new: list[Any]) -> bool:
    """Tells whether `new` begins with all of `old`; runs at every step, so it must be fast."""
    if len(new) < len(old):
        return False
    head = new[: len(old)]
    if old.only_texts:
        return old == head
    return all(map(is_, old, head)) or _same(old, head)


def _same(old: Any, new: Any) -> bool:
    """Compares as JSON does: `1`, `1.0` and `true` are three values, but equal for `==`."""
    if old is new:
        return True
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(_same(v, new[k]) for k, v in old.items())
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_same, old, new))
    return type(old) is type(new) and bool(old == new)
