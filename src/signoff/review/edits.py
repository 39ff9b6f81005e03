"""Applies literal edits to a text; an edit without exactly one match is skipped."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from signoff.review.edit import Edit, EditKind

MOST_COUNTED = 1_000
"""Matches of an edit that are counted; more make no difference."""


@dataclass(frozen=True)
class EditResult:
    """A text after its edits."""

    text: str
    applied: tuple[Edit, ...] = ()
    unmatched: tuple[tuple[Edit, str], ...] = ()
    """The edits that were skipped, and why."""


def apply_edits(text: str, edits: Sequence[Edit]) -> EditResult:
    """Applies every edit whose `find` occurs exactly once.

    All edits are matched against the original text, so none can match what another one wrote.
    Of two edits that overlap, the first is applied. Two identical edits are applied once.
    """
    spans = _ClaimedSpans()
    changed: dict[tuple[EditKind, str, str], tuple[int, int, Edit]] = {}
    applied: list[Edit] = []
    unmatched: list[tuple[Edit, str]] = []
    for edit in edits:
        same = (edit.kind, edit.find, edit.text)
        if same in changed:
            applied.append(edit)
            continue
        start, reason = _find_once(text, edit.find)
        end = start + len(edit.find)
        if not reason and not spans.claim(start, end, shared=edit.kind is EditKind.INSERT_AFTER):
            reason = "overlaps"
        if reason:
            unmatched.append((edit, reason))
            continue
        changed[same] = (start, end, edit)
        applied.append(edit)
    return EditResult(_rewrite(text, list(changed.values())), tuple(applied), tuple(unmatched))


class _ClaimedSpans:
    """The spans of the text that edits change; insertions may share an anchor."""

    def __init__(self) -> None:
        self._exclusive: list[tuple[int, int]] = []
        self._shared: list[tuple[int, int]] = []

    def claim(self, start: int, end: int, *, shared: bool) -> bool:
        if _overlaps(self._exclusive, start, end):
            return False
        if shared:
            self._shared.append((start, end))
            return True
        if any(low < end and start < high for low, high in self._shared):
            return False
        self._exclusive.insert(bisect_left(self._exclusive, (start, end)), (start, end))
        return True


def _overlaps(spans: list[tuple[int, int]], start: int, end: int) -> bool:
    """Whether a span overlaps one of several sorted, disjoint spans."""
    index = bisect_left(spans, (start, end))
    before = index > 0 and spans[index - 1][1] > start
    return before or (index < len(spans) and spans[index][0] < end)


def _find_once(text: str, find: str) -> tuple[int, str]:
    """Returns the position of a text, and why it cannot be used if it is not unique."""
    start = text.find(find) if find else -1
    if start < 0:
        return -1, "not found"
    count, position = 1, start
    while count < MOST_COUNTED and (position := text.find(find, position + 1)) >= 0:
        count += 1
    if count == 1:
        return start, ""
    times = f"{count} times" if count < MOST_COUNTED else f"at least {count} times"
    return start, f"found {times}"


def _rewrite(text: str, applied: Sequence[tuple[int, int, Edit]]) -> str:
    changes = sorted((_change(start, end, edit) for start, end, edit in applied), key=_order)
    pieces: list[str] = []
    position = 0
    for start, end, new in changes:
        pieces += [text[position:start], new]
        position = end
    return "".join([*pieces, text[position:]])


def _change(start: int, end: int, edit: Edit) -> tuple[int, int, str]:
    match edit.kind:
        case EditKind.REPLACE:
            return start, end, edit.text
        case EditKind.DELETE:
            return start, end, ""
        case EditKind.INSERT_AFTER:
            return end, end, edit.text


def _order(change: tuple[int, int, str]) -> tuple[int, int]:
    """Sorts an insertion before a change that starts at the same position."""
    return change[0], change[1]
