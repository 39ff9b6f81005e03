from typing import Any

import pytest

from signoff.tagged_json import Tagged


class Fruit(Tagged):
    """A set for these tests."""


class RedApple(Fruit):
    """A member with a field that has no default."""

    weight: int
    names: tuple[str, ...] = ()


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


def test_values_are_equal_by_type_and_fields() -> None:
    """Tests and surfaces compare them, and put them into sets."""
    assert RedApple(3) == RedApple(weight=3)
    assert len({RedApple(3), RedApple(3), RedApple(4), Pear()}) == 3
    assert repr(RedApple(3)) == "RedApple(weight=3, names=())"


def test_a_match_takes_the_fields_in_order() -> None:
    """Surfaces decide by `match`."""
    match RedApple(3, ("a",)):
        case RedApple(weight, names):
            assert (weight, names) == (3, ("a",))


def test_a_value_is_changed_only_by_a_copy() -> None:
    """A reason that another module changes would no longer be what the journal says."""
    apple: Any = RedApple(3)

    with pytest.raises(AttributeError):
        apple.weight = 4

    assert apple.replaced(weight=4) == RedApple(4)
    assert apple == RedApple(3)


@pytest.mark.parametrize(("args", "values"), [((), {}), ((1, (), 2), {}), ((1,), {"color": "red"})])
def test_wrong_fields_are_refused(args: tuple[Any, ...], values: dict[str, Any]) -> None:
    """A mistake would show up only when a journal is read back."""
    member: Any = RedApple

    with pytest.raises(TypeError, match="RedApple"):
        member(*args, **values)


def test_an_unknown_kind_is_refused() -> None:
    """A journal of a later version may hold one."""
    with pytest.raises(ValueError, match="plum"):
        Fruit.from_json({"kind": "plum"})
