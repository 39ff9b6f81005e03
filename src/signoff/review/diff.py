"""Finds the changed lines between two texts, in bounded time for any input.

This is a patience diff: lines that occur once in both texts anchor the comparison, and only
the lines between two anchors are compared exactly.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MOST_COMPARED = 100_000_000
"""Pairs of lines that are compared between two anchors; beyond it, the range is one change."""


@dataclass(frozen=True)
class Change:
    """A range of old lines and the new lines that replace it; the ends are exclusive."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def changes(old: Sequence[str], new: Sequence[str]) -> Iterator[Change]:
    """Yields every change between two texts, in order."""
    head = _common_prefix(old, new)
    tail = _common_prefix(old[head:][::-1], new[head:][::-1])
    ends = (len(old) - tail, len(new) - tail)
    old_middle, new_middle = old[head : ends[0]], new[head : ends[1]]
    start = (head, head)
    for left, right in [*_anchors(old_middle, new_middle), (len(old_middle), len(new_middle))]:
        anchor = (head + left, head + right)
        yield from _between(old, new, start, anchor)
        start = (anchor[0] + 1, anchor[1] + 1)


def _common_prefix(old: Sequence[str], new: Sequence[str]) -> int:
    """Returns the number of equal lines at the start of two texts."""
    pairs = zip(old, new, strict=False)
    different = (index for index, (left, right) in enumerate(pairs) if left != right)
    return next(different, min(len(old), len(new)))


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Returns the longest sequence of unique common lines that is in order in both texts."""
    old_count, new_count = Counter(old), Counter(new)
    positions = {line: index for index, line in enumerate(new) if new_count[line] == 1}
    pairs = [
        (index, positions[line])
        for index, line in enumerate(old)
        if old_count[line] == 1 and line in positions
    ]
    # Patience sorting: the number of piles is the length of the longest increasing sequence,
    # and `before` links each pair to its predecessor in that sequence.
    tops: list[int] = []
    piles: list[int] = []
    before: list[int | None] = []
    for number, (_, right) in enumerate(pairs):
        pile = bisect_left(tops, right)
        before.append(piles[pile - 1] if pile else None)
        tops[pile : pile + 1] = [right]
        piles[pile : pile + 1] = [number]
    sequence: list[tuple[int, int]] = []
    last = piles[-1] if piles else None
    while last is not None:
        sequence.append(pairs[last])
        last = before[last]
    return sequence[::-1]


def _between(
    old: Sequence[str], new: Sequence[str], start: tuple[int, int], end: tuple[int, int]
) -> Iterator[Change]:
    """Yields the changes between two anchors; adjacent lines are one change."""
    old_lines, new_lines = old[start[0] : end[0]], new[start[1] : end[1]]
    if not old_lines and not new_lines:
        return
    if not old_lines or not new_lines or len(old_lines) * len(new_lines) > MOST_COMPARED:
        yield Change(start[0], end[0], start[1], end[1])
        return
    from rapidfuzz.distance import Indel

    # Equal lines get equal numbers: rapidfuzz would compare strings by their hashes.
    numbers: dict[str, int] = {}
    left = [numbers.setdefault(line, len(numbers)) for line in old_lines]
    right = [numbers.setdefault(line, len(numbers)) for line in new_lines]
    position = (0, 0)
    for block in Indel.opcodes(left, right):
        if block.tag != "equal":
            continue
        yield from _gap(start, position, (block.src_start, block.dest_start))
        position = (block.src_end, block.dest_end)
    yield from _gap(start, position, (len(left), len(right)))


def _gap(start: tuple[int, int], low: tuple[int, int], high: tuple[int, int]) -> Iterator[Change]:
    if low != high:
        yield Change(start[0] + low[0], start[0] + high[0], start[1] + low[1], start[1] + high[1])
