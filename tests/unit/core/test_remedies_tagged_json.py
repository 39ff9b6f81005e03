from dataclasses import dataclass

import pytest

from signoff.core.remedies import TaggedValue


class Fruit(TaggedValue):
    """A set for these tests."""


@dataclass(frozen=True)
class RedApple(Fruit):
    """A member with a field that has no default."""

    weight: int
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pear(Fruit):
    """A member without fields."""


def test_a_value_is_read_back_as_it_was_stored() -> None:
    """Journals store stop reasons and remedies this way."""
    apple = RedApple(3, names=("a", "b"))

    stored = apple.to_json()

    assert stored == {"kind": "red_apple", "weight": 3, "names": ("a", "b")}
    assert Fruit.from_json({**stored, "names": ["a", "b"]}) == apple


def test_fields_at_their_default_are_not_stored() -> None:
    """A field that a later version adds must not change what is stored today."""
    assert RedApple(3).to_json() == {"kind": "red_apple", "weight": 3}
    assert Fruit.from_json({"kind": "pear"}) == Pear()


def test_an_unknown_kind_is_refused() -> None:
    """A journal of a later version may hold one."""
    with pytest.raises(ValueError, match="plum"):
        Fruit.from_json({"kind": "plum"})
