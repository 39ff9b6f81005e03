"""Light dataclasses behave like ordinary ones, but are quick to define."""

from dataclasses import FrozenInstanceError, asdict, field, replace

import pytest

from signoff.light_dataclass import frozen_dataclass, light_dataclass


@light_dataclass(frozen=True)
class Point:
    """A frozen class with a field of each kind."""

    x: int
    tags: tuple[str, ...] = ()
    note: str = field(default="", compare=False)
    secret: str = field(default="", repr=False)


@light_dataclass(frozen=True)
class Point3(Point):
    """Another class with the same fields, and one more."""

    z: int = 0


@light_dataclass(slots=True)
class Counter:
    """A class that changes."""

    count: int = 0
    next: object = None


@frozen_dataclass(slots=True, kw_only=True)
class Price:
    """A class whose instances users get."""

    usd: float
    note: str = field(default="", compare=False)


@light_dataclass(frozen=True)
class Empty:
    """A class without fields."""


@light_dataclass(frozen=True)
class Named:
    """A class with a method of its own."""

    name: str

    def __repr__(self) -> str:
        return self.name


def test_equality_is_that_of_the_compared_fields_within_one_class() -> None:
    """Decisions and findings are compared; a wrong answer would repeat or drop work."""
    assert Point(1, ("a",), note="x") == Point(1, ("a",), note="y")
    assert Point(1) != Point(2)
    assert Point(1) != Point3(1)
    assert Empty() == Empty()
    assert Counter(1) == Counter(1) != Counter(2)


def test_frozen_ones_have_a_hash_and_others_have_none() -> None:
    """Values are put into sets; what changes must not be."""
    assert {Point(1, note="x"), Point(1, note="y"), Empty(), Empty()} == {Point(1), Empty()}
    with pytest.raises(TypeError, match="unhashable"):
        hash(Counter())


def test_they_print_like_ordinary_dataclasses() -> None:
    """Messages of failed tests and logs show them, without the fields that are hidden."""
    loop = Counter(1)
    loop.next = loop

    assert repr(Point3(1, ("a",), "n", "key", z=2)) == "Point3(x=1, tags=('a',), note='n', z=2)"
    assert repr(loop) == "Counter(count=1, next=...)"
    assert repr(Named("own")) == "own"


def test_they_are_dataclasses() -> None:
    """Code that copies and lists fields works with both kinds."""
    assert replace(Point3(1, z=2), x=5) == Point3(5, z=2)
    assert asdict(Counter(1)) == {"count": 1, "next": None}
    assert not hasattr(Counter(), "__dict__")
    match Point(1, ("a",)):
        case Point(x, tags):
            assert (x, tags) == (1, ("a",))


def test_what_users_get_refuses_changes() -> None:
    """Users may not run a type checker, and a changed value would differ from the journal."""
    price = Price(usd=1.5, note="x")

    with pytest.raises(FrozenInstanceError):
        price.usd = 2  # type: ignore[misc]  # the point of this test
    with pytest.raises(FrozenInstanceError):
        del price.usd
    with pytest.raises(TypeError, match="positional"):
        Price(1.5)  # type: ignore[call-arg]  # it takes keywords only
    assert {price} == {Price(usd=1.5)}
    assert repr(price) == "Price(usd=1.5, note='x')"
