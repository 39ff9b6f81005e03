"""Which severities block in which round of a loop of work and review.

The first rounds are strict. Later ones give up what matters least, so that a loop ends
although a reviewer always finds something; what matters most blocks in every round.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

S = TypeVar("S")

BlockingTable = Mapping[int, Collection[S]]
"""The severities that block, by the first round in which they do. A row counts until the next
one, and the first row counts from the beginning."""

DEFAULT_STARTS = (1, 3, 5)
"""The first rounds of the rows of a table, unless it has others."""


def blocking_at(iteration: int, table: BlockingTable[S]) -> frozenset[S]:
    """Returns the severities that block in a round."""
    started = [start for start in table if start <= iteration]
    # A round before the first row is a mistake, and must not turn the review off.
    return frozenset(table[max(started) if started else min(table)])


def relaxing_table(
    severities: Sequence[S], starts: Sequence[int] = DEFAULT_STARTS
) -> dict[int, tuple[S, ...]]:
    """Returns a table in which everything blocks at first, and each row drops the least severity.

    `severities` has the worst first, which blocks in every row.
    """
    counts = range(len(severities), len(severities) - len(starts), -1)
    rows = zip(starts, counts, strict=True)
    return {start: tuple(severities[: max(count, 1)]) for start, count in rows}
