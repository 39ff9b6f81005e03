"""Makes literal edits: all at once, each exactly where it belongs, or not at all."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from signoff.review.edit import Edit, EditKind

MOST_COUNTED = 1_000


@dataclass(frozen=True)
class EditResult:
    """A text after its edits."""

    text: str
    applied: tuple[Edit, ...] = ()
    unmatched: tuple[tuple[Edit, str], ...] = ()
    """What was not made, and why."""


def apply_edits(text: str, edits: Sequence[Edit]) -> EditResult:
    """Returns a text with every edit made whose `find` stands in it exactly once.

    All are looked up in the text as it was, so none can match what another one wrote.
    Of two that touch the same place the first is made; of two that are alike, one is, for both.
    """
    taken = _Taken()
    changed: dict[tuple[EditKind, str, str], tuple[int, int, Edit]] = {}
    made: list[Edit] = []
    unmatched: list[tuple[Edit, str]] = []
    for edit in edits:
        same = (edit.kind, edit.find, edit.text)
        if same in changed:
            made.append(edit)
            continue
        start, why = _place(text, edit.find)
        end = start + len(edit.find)
        if not why and not taken.take(start, end, shared=edit.kind is EditKind.INSERT_AFTER):
            why = "overlaps"
        if why:
            unmatched.append((edit, why))
            continue
        changed[same] = (start, end, edit)
        made.append(edit)
    return EditResult(_rewritten(text, list(changed.values())), tuple(made), tuple(unmatched))


class _Taken:
    """Places that edits have been given; insertions may share theirs with each other."""

    def __init__(self) -> None:
        self._alone: list[tuple[int, int]] = []
        self._shared: list[tuple[int, int]] = []

    def take(self, start: int, end: int, *, shared: bool) -> bool:
        if _touches(self._alone, start, end):
            return False
        if shared:
            self._shared.append((start, end))
            return True
        if any(low < end and start < high for low, high in self._shared):
            return False
        self._alone.insert(bisect_left(self._alone, (start, end)), (start, end))
        return True


def _touches(spans: list[tuple[int, int]], start: int, end: int) -> bool:
    """Tells whether a place overlaps one of some that do not overlap each other, in order."""
    at = bisect_left(spans, (start, end))
    before = at > 0 and spans[at - 1][1] > start
    return before or (at < len(spans) and spans[at][0] < end)


def _place(text: str, find: str) -> tuple[int, str]:
    start = text.find(find) if find else -1
    if start < 0:
        return -1, "not found"
    times, at = 1, start
    while times < MOST_COUNTED and (at := text.find(find, at + 1)) >= 0:
        times += 1
    if times == 1:
        return start, ""
    many = f"{times} times" if times < MOST_COUNTED else f"at least {times} times"
    return start, f"found {many}"


def _rewritten(text: str, applied: Sequence[tuple[int, int, Edit]]) -> str:
    changes = sorted((_change(start, end, edit) for start, end, edit in applied), key=_order)
    pieces: list[str] = []
    at = 0
    for start, end, new in changes:
        pieces += [text[at:start], new]
        at = end
    return "".join([*pieces, text[at:]])


def _change(start: int, end: int, edit: Edit) -> tuple[int, int, str]:
    match edit.kind:
        case EditKind.REPLACE:
            return start, end, edit.text
        case EditKind.DELETE:
            return start, end, ""
        case EditKind.INSERT_AFTER:
            return end, end, edit.text


def _order(change: tuple[int, int, str]) -> tuple[int, int]:
    """Sorts an insertion before a change that begins where it is made."""
    return change[0], change[1]
