"""What a step changed, and nothing else.

A handler returns an update that is merged into the state. The journal stores only the difference:
keys with a new value, and for a list that only grew, its new tail. Without the tail, every step
that adds to a long list would store the whole list again. A handler that changes a few items of a
large value returns it as a `Revision`, and only these items are stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_
from typing import Any

from signoff.core.errors import BadHandlerResult, NotSerialisable
from signoff.core.frozen import FrozenDict, FrozenList, as_key, freeze

SET, APPEND, REVISE, ITEMS = "set", "append", "revise", "items"

Delta = dict[str, dict[str, Any]]
"""`{"set": {key: value}, "append": {key: [new items]}, "revise": {key: changes}}`; each part is
absent when empty. The changes of a dict are a delta too, with `"items": {key: [[index, item]]}`."""


class Append(list[Any]):
    """An update that adds items to a list without having to read it first."""


class Revision(dict[str, Any]):
    """A new version of a dict, of which only the difference to the old one is stored.

    Use it for a dict of scalars and lists whose lists are long and change in a few places.
    """


def diff(state: Mapping[str, Any], update: Mapping[str, Any]) -> Delta:
    """Returns what `update` changes in `state`, as read-only values."""
    parts: Delta = {SET: {}, APPEND: {}, REVISE: {}}
    for name, new in update.items():
        key = as_key(name)
        old = state.get(key)
        # The same object is the same value: most updates repeat what the handler was given, and
        # this check spares them a comparison of everything inside.
        if new is old and (old is not None or key in state):
            continue
        part, value = _part(key, old, new, exists=key in state)
        if value or part == SET or type(new) is Append:
            parts[part][key] = value
    return {name: part for name, part in parts.items() if part}


def _part(key: str, old: Any, new: Any, *, exists: bool) -> tuple[str, Any]:
    """Returns how a value is stored, and what of it; nothing to append means no change."""
    if type(new) is Revision and type(old) is FrozenDict and old.keys() <= new.keys():
        return REVISE, _revise(old, new)
    if type(new) is Append:
        if type(old) is not FrozenList and exists:
            raise BadHandlerResult(f"state {key!r} is not a list, so nothing can be appended to it")
        return APPEND, _storable(key, new)
    if type(old) is FrozenList and isinstance(new, list) and _extends(old, new):
        # Only the tail is frozen and stored, so a step does not pay for the whole list.
        return APPEND, _storable(key, new[len(old) :])
    return SET, _storable(key, new)


def apply(state: Mapping[str, Any], delta: Delta) -> FrozenDict:
    """Returns the state after a delta; unchanged values are shared, not copied."""
    if not delta and type(state) is FrozenDict:
        return state
    after = dict(state)
    for key, value in delta.get(SET, {}).items():
        after[key] = freeze(value)
    for key, tail in delta.get(APPEND, {}).items():
        # A new list, never the old one grown in place: another key may have the same list.
        after[key] = FrozenList([*after.get(key, ()), *freeze(tail)])
    for key, changes in delta.get(REVISE, {}).items():
        after[key] = _revised(after.get(key, {}), changes)
    return FrozenDict(after)


def _revise(old: Mapping[str, Any], new: Mapping[str, Any]) -> Delta:
    """Returns the difference of two dicts; items of lists are compared by their position."""
    items: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for key, value in new.items():
        before = old.get(key)
        if type(before) is not FrozenList or not isinstance(value, list):
            if key not in old or not _same(before, value):
                rest[key] = value
            continue
        head = value[: len(before)]
        pairs = enumerate(zip(before, head, strict=False))
        changes = [[i, _storable(key, b)] for i, (a, b) in pairs if not _same(a, b)]
        # When most items differ, the whole list is shorter than a list of changes.
        if len(head) < len(before) or len(changes) * 2 > len(before):
            rest[key] = value
            continue
        if changes:
            items[key] = changes
        if len(value) > len(before):
            rest[key] = Append(value[len(before) :])
    delta = diff({k: v for k, v in old.items() if k in rest}, rest)
    return {**delta, ITEMS: items} if items else delta


def _revised(old: Mapping[str, Any], changes: Delta) -> FrozenDict:
    after = dict(old)
    for key, items in changes.get(ITEMS, {}).items():
        values = list(after[key])
        for index, value in items:
            values[index] = freeze(value)
        after[key] = FrozenList(values)
    return apply(after, {name: part for name, part in changes.items() if name != ITEMS})


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
    # Most handlers return the items they were given, so most comparisons end with their identity.
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
