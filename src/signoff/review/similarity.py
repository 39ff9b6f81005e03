"""How alike two texts are, and whether the versions of a text have stopped changing."""

from __future__ import annotations

from collections.abc import Sequence

ALIKE = 0.95
"""Versions that are more alike than this count as unchanged."""
FIRST_COMPARED = 3
"""From this version on: the first change after a review is often small."""


def calculate_similarity(a: str, b: str) -> float:
    """Returns a number from 0 to 1; 1 means equal, apart from case and spaces."""
    # Imported here because most commands compare nothing.
    from rapidfuzz.distance import Indel

    first, second = (" ".join(text.casefold().split()) for text in (a, b))
    return float(Indel.normalized_similarity(first, second))


def has_converged(versions: Sequence[str], threshold: float = ALIKE) -> bool:
    """Whether the last two of at least three versions are more alike than the threshold."""
    if len(versions) < FIRST_COMPARED:
        return False
    return calculate_similarity(*versions[-2:]) > threshold
