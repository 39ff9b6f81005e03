"""What a step changed, and nothing else.

A handler returns an update that is merged into the state. The journal stores only
the difference: keys whose value is new, and for a list that merely grew, the new
tail. Without the second, a growing list would make every step dearer than the last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.core.frozen import FrozenDict, FrozenList, freeze

Delta = dict[str, dict[str, Any]]
"""`{"set": {key: value}, "append": {key: [new items]}}`, either part absent when empty."""


class Append(list[Any]):
    """An update that adds items to a list without having to read it first."""


def diff(state: Mapping[str, Any], update: Mapping[str, Any]) -> Delta:
    """Returns what `update` changes in `state`."""
    put: dict[str, Any] = {}
    grown: dict[str, Any] = {}
    for key, new in update.items():
        old = state.get(key)
        if type(new) is Append:
            if type(old) is FrozenList or key not in state:
                grown[key] = list(new)
            else:
                raise TypeError(f"state {key!r} is not a list, so nothing can be appended to it")
        elif new is old and (old is not None or key in state):
            continue
        elif type(old) is FrozenList and isinstance(new, list) and _extends(old, new):
            if len(new) > len(old):
                grown[key] = new[len(old) :]
        else:
            put[key] = new
    delta: Delta = {}
    if put:
        delta["set"] = put
    if grown:
        delta["append"] = grown
    return delta


def apply(state: Mapping[str, Any], delta: Delta) -> FrozenDict:
    """Returns the state after a delta; unchanged values are shared, not copied."""
    if not delta:
        return state if type(state) is FrozenDict else FrozenDict(state)
    after = dict(state)
    for key, value in delta.get("set", {}).items():
        after[key] = freeze(value)
    for key, tail in delta.get("append", {}).items():
        old = after.get(key)
        if type(old) is FrozenList:
            # The fold owns this list: growing it in place keeps a step's cost independent
            # of its length. A handler that still holds it has already returned.
            list.extend(old, [freeze(v) for v in tail])
        else:
            after[key] = freeze(list(tail))
    return FrozenDict(after)


def _extends(old: list[Any], new: list[Any]) -> bool:
    """Tells whether `new` begins with all of `old`."""
    return len(new) >= len(old) and new[: len(old)] == old
