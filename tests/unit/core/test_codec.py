import json
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, StrEnum
from typing import Any, NoReturn
from uuid import UUID

import pytest

from signoff.core.codec import BLOB_FROM, Blobs, decode, encode
from signoff.core.digest import text_digest
from signoff.core.errors import NotSerialisable, StoreDamaged
from signoff.core.frozen import STORED_DEPTH, freeze

LONG = "a long text " * BLOB_FROM


class Colour(Enum):
    RED = "red"


class Size(StrEnum):
    SMALL = "small"


class Wide(float):
    pass


class Named(str):
    __slots__ = ()


@dataclass
class Point:
    x: int = 1


Pair = namedtuple("Pair", "one two")


def test_a_text_becomes_a_blob_at_exactly_the_stated_length() -> None:
    """Shorter texts are in the row itself, so the common small value costs no second lookup."""
    blobs: Blobs = {}

    encode(["x" * (BLOB_FROM - 1), "y" * BLOB_FROM], blobs)

    assert list(blobs.values()) == ["y" * BLOB_FROM]


def test_a_blob_is_only_looked_up_where_one_is_referred_to() -> None:
    """A user's "$5" or "$HOME" is not a reference."""
    value = {"price": "$5", "$HOME": ["$blob", "$is"]}

    assert decode(encode(value, {}), refuse_look_up) == value


@pytest.mark.parametrize(
    "hostile",
    [
        {"$blob": text_digest(LONG)},
        {"$blob": 1},
        {"$blob": {"$blob": "x"}},
        {"$is": {"$blob": "x"}},
        {"$is": 1},
        {"$is": {"$is": {"$is": []}}},
        {"$blob": "x", "$is": "y", "other": 1},
        [{"a": {"$blob": "x"}}],
        {"$blob": LONG},
        {"$is": {"$blob": LONG}},
    ],
)
def test_a_value_that_poses_as_a_reference_comes_back_as_itself(hostile: Any) -> None:
    """A model could otherwise have the text of another run put into its prompt."""
    blobs: Blobs = {}

    text = encode(hostile, blobs)

    assert decode(text, blobs.__getitem__) == hostile


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("-inf"),
        Wide("nan"),
        {1},
        b"x",
        object(),
        10**5000,
        UUID(int=1),
        datetime(2026, 1, 1, tzinfo=UTC),
        Colour.RED,
        Point(),
    ],
    ids="nan,-inf,own nan,set,bytes,object,too long,uuid,datetime,enum,dataclass".split(","),
)
def test_what_json_cannot_hold_is_refused_with_what_would_do(value: Any) -> None:
    """The author has to know what to return instead."""
    with pytest.raises(NotSerialisable, match="use strings, numbers, booleans"):
        encode({"value": value}, {})


@pytest.mark.parametrize(
    "value",
    [
        2**63,
        2**64,
        -(2**63) - 1,
        10**400,
        1e-7,
        5e-324,
        1.7976931348623157e308,
        -0.0,
        True,
        (1, (2,)),
        Size.SMALL,
        Wide(1.5),
        Named("text"),
        {Named("key"): "value"},
        OrderedDict(b=1, a=2),
        Pair(1, "two"),
        freeze({"a": [1, {"b": 2}]}),
        "".join(map(chr, range(0x300))) + "\u2028\ufeff\uffff\U0001f600",
    ],
    ids=lambda value: f"{value!r:.20}",
)
def test_a_value_comes_back_as_the_standard_library_would_give_it(value: Any) -> None:
    """Databases written by one version are read by others, and by other programs."""
    stored = encode([value], {})

    assert repr(json.loads(stored)) == repr(json.loads(json.dumps([value])))


def test_nesting_is_stored_up_to_a_limit_that_can_always_be_read_back() -> None:
    """A value that can be written and not read would make its run impossible to resume."""
    deepest = nested(STORED_DEPTH)

    assert decode(encode(deepest, {}), refuse_look_up) == deepest
    with pytest.raises(NotSerialisable, match="nested"):
        encode(nested(STORED_DEPTH + 1), {})


def test_a_state_wrapped_deeper_by_every_step_is_refused_in_time() -> None:
    """Each wrapping alone is shallow; together they must not pass the limit."""
    value = freeze(["core"])
    for _ in range(STORED_DEPTH):
        value = freeze([value])

    with pytest.raises(NotSerialisable, match="nested"):
        encode(value, {})


def test_a_value_that_contains_itself_is_refused() -> None:
    """Walking it would never end."""
    circle: dict[str, Any] = {}
    circle["self"] = circle

    with pytest.raises(NotSerialisable, match="in itself"):
        encode(circle, {})


@pytest.mark.parametrize("text", ["cut \ud83d", "\udcff", "\ud83d" + LONG, "\u0000", "\u2028"])
def test_half_a_character_survives(text: str) -> None:
    """A reply cut off within an emoji was paid for; refusing to store it would lose it."""
    blobs: Blobs = {}

    stored = encode({"text": text, "$": 1}, blobs)

    assert stored.encode()
    assert all(blob.encode() for blob in blobs.values())
    assert decode(stored, blobs.__getitem__) == {"text": text, "$": 1}


@pytest.mark.parametrize("text", ["", "{", "{'a': 1}", "[" * 100_000])
def test_a_damaged_text_is_reported_as_damaged(text: str) -> None:
    """The operator must learn that the database is at fault, not the workflow."""
    with pytest.raises(StoreDamaged):
        decode(text, refuse_look_up)


def nested(levels: int) -> Any:
    value: Any = "core"
    for _ in range(levels):
        value = [value]
    return value


def refuse_look_up(key: str) -> NoReturn:
    raise AssertionError(f"looked up {key}")


def test_a_long_text_with_a_nul_stays_in_the_json() -> None:
    """PostgreSQL refuses the character in a text of its own; models write it now and then."""
    blobs: dict[str, str] = {}

    text = encode([LONG + "\x00"], blobs)

    assert not blobs
    assert "\x00" not in text
    assert decode(text, blobs.__getitem__) == [LONG + "\x00"]
