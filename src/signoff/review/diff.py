"""What differs between two lists of lines, in time that stays bounded for any of them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MOST_COMPARED = 100_000_000
"""Pairs of lines looked at in one stretch; a longer one that differs is shown as one change."""


@dataclass(frozen=True)
class Change:
    """Lines that were taken out and put in at one place; the ends are not included."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def changes(old: Sequence[str], new: Sequence[str]) -> Iterator[Change]:
    """Yields every place where two texts differ, in order.

    Lines that stand once in both hold the texts together; what lies between them is
    compared exactly.
    """
    head = _shared(old, new)
    tail = _shared(old[head:][::-1], new[head:][::-1])
    ends = (len(old) - tail, len(new) - tail)
    ours, theirs = old[head : ends[0]], new[head : ends[1]]
    at = (head, head)
    for left, right in [*_anchors(ours, theirs), (len(ours), len(theirs))]:
        here = (head + left, head + right)
        yield from _between(old, new, at, here)
        at = (here[0] + 1, here[1] + 1)


def _shared(old: Sequence[str], new: Sequence[str]) -> int:
    """Returns how many lines two texts begin alike with."""
    pairs = zip(old, new, strict=False)
    differs = (at for at, (left, right) in enumerate(pairs) if left != right)
    return next(differs, min(len(old), len(new)))


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Returns the longest row of lines unique on both sides, in the same order on both."""
    once_old, once_new = Counter(old), Counter(new)
    where = {line: at for at, line in enumerate(new) if once_new[line] == 1}
    pairs = [
        (at, where[line]) for at, line in enumerate(old) if once_old[line] == 1 and line in where
    ]
    tops: list[int] = []
    piles: list[int] = []
    before: list[int | None] = []
    for number, (_, right) in enumerate(pairs):
        pile = bisect_left(tops, right)
        before.append(piles[pile - 1] if pile else None)
        tops[pile : pile + 1] = [right]
        piles[pile : pile + 1] = [number]
    row: list[tuple[int, int]] = []
    last = piles[-1] if piles else None
    while last is not None:
        row.append(pairs[last])
        last = before[last]
    return row[::-1]


def _between(
    old: Sequence[str], new: Sequence[str], start: tuple[int, int], end: tuple[int, int]
) -> Iterator[Change]:
    """Yields the changes of one stretch; lines next to each other are one change."""
    ours, theirs = old[start[0] : end[0]], new[start[1] : end[1]]
    if not ours and not theirs:
        return
    if not ours or not theirs or len(ours) * len(theirs) > MOST_COMPARED:
        yield Change(start[0], end[0], start[1], end[1])
        return
    from rapidfuzz.distance import Indel

    # Numbers, since lines are told apart by their hashes.
    numbers: dict[str, int] = {}
    left = [numbers.setdefault(line, len(numbers)) for line in ours]
    right = [numbers.setdefault(line, len(numbers)) for line in theirs]
    at = (0, 0)
    for block in Indel.opcodes(left, right):
        if block.tag != "equal":
            continue
        yield from _gap(start, at, (block.src_start, block.dest_start))
        at = (block.src_end, block.dest_end)
    yield from _gap(start, at, (len(left), len(right)))


def _gap(start: tuple[int, int], low: tuple[int, int], high: tuple[int, int]) -> Iterator[Change]:
    if low != high:
        yield Change(start[0] + low[0], start[0] + high[0], start[1] + low[1], start[1] + high[1])
