"""Literal changes to a text: exact enough to be applied without an agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from signoff.review.record import Record

_SHARED, _EXCLUSIVE = 1, 2
"""How a character of the text is used: as an anchor of insertions, or by one change alone."""


class EditKind(StrEnum):
    """What happens to the text that `find` names."""

    REPLACE = "replace"
    INSERT_AFTER = "insert_after"
    DELETE = "delete"


@dataclass(frozen=True)
class Edit(Record):
    """One change; it is applied only if `find` occurs exactly once in the artifact."""

    kind: EditKind
    find: str
    text: str = ""
    """The replacement or the inserted text; empty for a deletion."""
    issue: str = ""
    """The id of the issue it fixes."""


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
    Of two edits that overlap, the first is applied; but insertions may share an anchor. Two
    identical edits are applied once.
    """
    # One mark for each character: a list of spans would be searched once for every edit.
    marks = bytearray(len(text))
    changes: dict[tuple[EditKind, str, str], tuple[int, int, str]] = {}
    applied: list[Edit] = []
    unmatched: list[tuple[Edit, str]] = []
    for edit in edits:
        same = (edit.kind, edit.find, edit.text)
        if same not in changes:
            start, reason = _find_once(text, edit.find)
            end = start + len(edit.find)
            inserts = edit.kind is EditKind.INSERT_AFTER
            used = marks[start:end] if not reason else b""
            if _EXCLUSIVE in used or (any(used) and not inserts):
                reason = "overlaps"
            if reason:
                unmatched.append((edit, reason))
                continue
            marks[start:end] = bytes([_SHARED if inserts else _EXCLUSIVE]) * (end - start)
            new = "" if edit.kind is EditKind.DELETE else edit.text
            changes[same] = (end if inserts else start, end, new)
        applied.append(edit)
    return EditResult(_rewrite(text, list(changes.values())), tuple(applied), tuple(unmatched))


def _find_once(text: str, find: str) -> tuple[int, str]:
    """Returns the position of a text, and why it cannot be used if it is not unique."""
    start = text.find(find) if find else -1
    if start < 0:
        return -1, "not found"
    if text.find(find, start + 1) < 0:
        return start, ""
    # Overlapping matches count as one here, but there are at least two.
    return start, f"found {max(2, text.count(find))} times"


def _rewrite(text: str, changes: Sequence[tuple[int, int, str]]) -> str:
    pieces: list[str] = []
    position = 0
    # An insertion has an empty range, so it sorts before a change that starts at its position.
    for start, end, new in sorted(changes, key=lambda change: change[:2]):
        pieces += [text[position:start], new]
        position = end
    return "".join([*pieces, text[position:]])
