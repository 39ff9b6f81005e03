"""What `ctx.random()` returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Chance(Protocol):
    """A random number generator, such as `random.Random`."""

    def random(self) -> float:
        """Returns a number from 0 up to 1."""

    def uniform(self, a: float, b: float) -> float:
        """Returns a number between two others."""

    def randint(self, a: int, b: int) -> int:
        """Returns an integer between two others, both included."""

    def choice(self, seq: Sequence[T]) -> T:
        """Returns a random element."""

    def shuffle(self, x: list[Any]) -> None:
        """Shuffles a list in place."""
