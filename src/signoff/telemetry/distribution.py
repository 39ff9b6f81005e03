"""Counts values by size, as histograms need them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

EFFECT_SECONDS = (0.01, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 14400.0, 86400.0)
"""From a file to an approval that someone gives the next day."""

CLAIM_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)
"""From a worker that was waiting for work to one that someone has to start."""

RUN_SECONDS = (1.0, 5.0, 15.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0, 604800.0)
"""From a script to a run that waits a week for its approval."""

ROUNDS = (1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 20.0, 50.0)


@dataclass(slots=True)
class Distribution:
    """How many values are at most as large as each bound."""

    bounds: Sequence[float]
    counts: list[int] = field(default_factory=list)
    """One more than there are bounds; the last one counts what is larger than all of them."""
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = self.counts or [0] * (len(self.bounds) + 1)

    def add(self, value: float) -> None:
        """Counts one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def merge(self, counts: Iterable[int], total: float) -> None:
        """Adds the values of a distribution with the same bounds."""
        self.counts = [a + b for a, b in zip(self.counts, counts, strict=True)]
        self.total += total
