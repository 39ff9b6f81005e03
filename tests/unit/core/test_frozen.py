import copy
import json
import pickle
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from enum import IntEnum, StrEnum
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import pytest

from signoff.core.delta import Append
from signoff.core.errors import NotSerialisable
from signoff.core.frozen import DEPTH, FrozenDict, FrozenList, freeze, thaw
from tests.tables import table


class Verdict(StrEnum):
    PASS = "pass"


class Level(IntEnum):
    HIGH = 3


class Point(NamedTuple):
    x: int
    y: int


CHANGES: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "append": ([1, 2], lambda v: v.append(1)),
    "extend": ([1, 2], lambda v: v.extend([1])),
    "insert": ([1, 2], lambda v: v.insert(0, 1)),
    "pop of a list": ([1, 2], lambda v: v.pop()),
    "remove": ([1, 2], lambda v: v.remove(1)),
    "clear of a list": ([1, 2], lambda v: v.clear()),
    "sort": ([1, 2], lambda v: v.sort()),
    "reverse": ([1, 2], lambda v: v.reverse()),
    "item of a list": ([1, 2], lambda v: v.__setitem__(0, 9)),
    "del of a list": ([1, 2], lambda v: v.__delitem__(0)),
    "+=": ([1, 2], lambda v: v.__iadd__([1])),
    "*=": ([1, 2], lambda v: v.__imul__(2)),
    "pop": ({"a": 1}, lambda v: v.pop("a")),
    "popitem": ({"a": 1}, lambda v: v.popitem()),
    "clear": ({"a": 1}, lambda v: v.clear()),
    "update": ({"a": 1}, lambda v: v.update(b=1)),
    "setdefault": ({"a": 1}, lambda v: v.setdefault("b", 1)),
    "item": ({"a": 1}, lambda v: v.__setitem__("a", 9)),
    "del": ({"a": 1}, lambda v: v.__delitem__("a")),
    "|=": ({"a": 1}, lambda v: v.__ior__({"b": 1})),
}


@table(("plain", "change"), CHANGES)
def test_a_frozen_value_refuses_every_change(plain: Any, change: Callable[[Any], Any]) -> None:
    """A handler that changes state in place would leave a state the journal does not have."""
    value = freeze(plain)

    with pytest.raises(TypeError, match="read-only; return the new value"):
        change(value)

    assert value == plain


def test_a_frozen_value_looks_like_what_it_was_made_of_and_is_frozen_to_the_innermost() -> None:
    """Handlers print, compare and serialise state as the lists and dicts they stored."""
    plain = {"a": [1, {"b": [None]}], "c": "text"}

    value = freeze(plain)

    assert (value, repr(value), json.dumps(value)) == (plain, repr(plain), json.dumps(plain))
    inner = value["a"][1]
    assert [type(each) for each in (value, value["a"], inner, inner["b"])] == [
        FrozenDict, FrozenList, FrozenDict, FrozenList
    ]  # fmt: skip


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, thaw, lambda v: pickle.loads(pickle.dumps(v))],
    ids=["copy", "deepcopy", "thaw", "pickle"],
)
@pytest.mark.parametrize("value", [[[1], 2], {"a": [1]}], ids=["list", "dict"])
def test_a_copy_is_ordinary_and_can_be_changed(copied: Callable[[Any], Any], value: Any) -> None:
    """`copy.deepcopy(ctx.step_state)` is how people change state; the copy must let them."""
    copy_of_value = copied(freeze(value))

    assert copy_of_value == value
    assert type(copy_of_value) in (list, dict)


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ((1, (2,)), [1, [2]]),
        (Point(1, 2), [1, 2]),
        (Append([1]), [1]),
        (OrderedDict(a=1), {"a": 1}),
        (defaultdict(list, a=[1]), {"a": [1]}),
        (Verdict.PASS, "pass"),
        ({Verdict.PASS: Level.HIGH}, {"pass": 3}),
        (True, True),
        (1.5, 1.5),
        (None, None),
    ],
)
def test_a_value_becomes_what_the_journal_would_return(value: Any, stored: Any) -> None:
    """A step must see the same state whether or not the process was restarted before it."""
    frozen = freeze(value)

    assert frozen == stored
    assert json.loads(json.dumps(frozen)) == frozen
    assert not isinstance(frozen, StrEnum | tuple | OrderedDict | defaultdict)


@pytest.mark.parametrize("key", [1, 1.5, True, None, (1, 2), b"a"])
def test_a_key_that_is_not_a_string_is_refused(key: Any) -> None:
    """JSON would turn the key 1 into "1", and the state would change at the next restart."""
    with pytest.raises(NotSerialisable, match="keys must be strings"):
        freeze({"outer": [{key: "value"}]})


@pytest.mark.parametrize(
    "value",
    [{1, 2}, b"bytes", PurePosixPath("a"), object(), 1j, float("nan"), float("inf"), 10**5000],
    ids=["set", "bytes", "path", "object", "complex", "nan", "inf", "too long"],
)
def test_a_value_json_does_not_know_is_refused_with_what_would_do(value: Any) -> None:
    """It could not be read back, so it must not get into a state in the first place."""
    with pytest.raises(NotSerialisable, match="use strings, finite numbers"):
        freeze([value])


def test_a_value_may_be_nested_as_deep_as_is_promised_and_no_deeper() -> None:
    """Beyond some depth Python cannot read a value back; the run would be lost at its resume."""
    deepest = nested(DEPTH)

    assert freeze(deepest) == deepest
    with pytest.raises(NotSerialisable, match=f"more than {DEPTH} levels"):
        freeze(nested(DEPTH + 1))


def test_a_value_that_contains_itself_is_refused() -> None:
    """Walking it would never end."""
    circle: list[Any] = []
    circle.append(circle)

    with pytest.raises(NotSerialisable, match="in itself"):
        freeze(circle)


def nested(levels: int) -> Any:
    value: Any = "core"
    for _ in range(levels):
        value = [value]
    return value
