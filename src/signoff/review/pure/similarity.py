"""How alike two texts are, and whether the versions of a text have stopped changing.

Two reviewers word one problem differently, but both name what it is about: the identifiers, the
things and the effect. So claims are compared by the words that carry meaning, in any order, and
the shorter claim decides, because one of them often says more. `python -m benchmarks.same_claim`
measures the rule on labeled pairs.
"""

from __future__ import annotations

import re
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


SAME_CLAIM = 0.35
"""The share of the shorter claim's words that the other one must have."""
STEM = 4
"""Letters of a word that are compared, so that `slices` and `slicing` are one word."""

_WORD = re.compile(r"\w+")
_PART = re.compile(r"[^\W\d_]+|\d+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WITHOUT_MEANING = frozenset(
    # English words that every claim has,
    "a all also an and any are as at be because been being both but by can could did do does due "
    "each eg for from had has have here how i ie if in instead into is it its may might must no "
    "not of on only or other rather same should so such than that the their them then there these "
    "they this those to use used uses using via was were what when where which while why will "
    "with without would you your "
    # and words that every review has.
    "add bug bugs call called calling calls cause causes causing change changed changes class code "
    "consider ensure file fix function incorrect incorrectly issue lead leading leads line lines "
    "make makes method need needs possible potential potentially problem result resulting results "
    "value values wrong".split()
)


def same_claim(one: str, other: str) -> bool:
    """Whether two sentences about a text name the same problem, in whatever words."""
    return one.split() == other.split() or claim_overlap(one, other) >= SAME_CLAIM


def claim_overlap(one: str, other: str) -> float:
    """Returns the share of the shorter claim's words that the other one has, too."""
    first, second = _meaning(one), _meaning(other)
    return len(first & second) / max(min(len(first), len(second)), 1)


def _meaning(claim: str) -> set[str]:
    """Returns the stems of a claim's words; an identifier counts as a whole and by its words."""
    stems: set[str] = set()
    for word in _WORD.findall(claim):
        parts = [part for run in _PART.findall(word) for part in _HUMP.split(run)]
        if len(parts) > 1:
            stems.add(word.casefold())
        plain = (part.casefold() for part in parts)
        stems.update(
            part[:STEM] for part in plain if len(part) > 1 and part not in _WITHOUT_MEANING
        )
    return stems
