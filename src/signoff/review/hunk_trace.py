"""Finds out which findings the changes between two distant versions answer.

Every version records the findings that its own hunks answer. A change over several versions is
made of such hunks, so their ranges of lines are carried through the versions in between, and a
change answers what the hunks inside of it answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from signoff.review.hunks import Change


class LabeledChanges(NamedTuple):
    """The changes from one version to the next, each with the findings that it answers."""

    changes: Sequence[Change]
    findings: Sequence[tuple[str, ...]]


def trace_findings(
    steps: Sequence[LabeledChanges], total: Sequence[Change]
) -> list[tuple[str, ...]]:
    """Returns the findings that each change between the first and the last version answers.

    `steps` lead from the first version to the last.
    """
    traces = [
        (_Trace(_back(change, steps[:number]), _ahead(change, steps[number + 1 :])), findings)
        for number, step in enumerate(steps)
        for change, findings in zip(step.changes, step.findings, strict=True)
        if findings
    ]
    return [tuple(dict.fromkeys(_answered(change, traces))) for change in total]


class _Trace(NamedTuple):
    """Where a hunk of some version is in the first and in the last one."""

    old: tuple[int, int]
    new: tuple[int, int]


def _answered(change: Change, traces: Sequence[tuple[_Trace, tuple[str, ...]]]) -> Iterator[str]:
    old, new = (change.old_start, change.old_end), (change.new_start, change.new_end)
    for trace, findings in traces:
        if _meet(trace.old, old) or _meet(trace.new, new):
            yield from findings


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two ranges share a line, or are the same place without lines."""
    return one == other or max(one[0], other[0]) < min(one[1], other[1])


def _ahead(change: Change, steps: Sequence[LabeledChanges]) -> tuple[int, int]:
    place = (change.new_start, change.new_end)
    for step in steps:
        place = _carried(place, step.changes)
    return place


def _back(change: Change, steps: Sequence[LabeledChanges]) -> tuple[int, int]:
    place = (change.old_start, change.old_end)
    for step in reversed(steps):
        turned = [Change(c.new_start, c.new_end, c.old_start, c.old_end) for c in step.changes]
        place = _carried(place, turned)
    return place


def _carried(place: tuple[int, int], changes: Sequence[Change]) -> tuple[int, int]:
    """Returns the range of lines that a range has become, widened to what it was changed with."""
    start, end = place
    touched = [each for each in changes if each.old_start < end and start < each.old_end]
    begin = start + _offset([each for each in changes if each.old_end <= start])
    # What is inserted right after the range is no part of it.
    stop = end + _offset([each for each in changes if each.old_end <= end and each.old_start < end])
    if touched and touched[0].old_start <= start:
        begin = touched[0].new_start
    if touched and touched[-1].old_end >= end:
        stop = touched[-1].new_end
    return begin, max(begin, stop)


def _offset(before: Sequence[Change]) -> int:
    """Returns by how many lines what follows these changes has moved."""
    return before[-1].new_end - before[-1].old_end if before else 0
