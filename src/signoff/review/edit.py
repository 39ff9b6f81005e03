"""Literal changes to a text: exact enough to be applied without an agent."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from signoff.review.record import Record

_SHARED, _EXCLUSIVE = 1, 2
"""How a character of the text is used: as an anchor of insertions, or by one change alone."""
_BREAK = re.compile(r"\r?\n")


class EditKind(StrEnum):
    """What happens to the text that `find` names."""

    REPLACE = "replace"
    INSERT_AFTER = "insert_after"
    DELETE = "delete"


@dataclass(frozen=True)
class Edit(Record):
    """One change; it is applied only if `find` occurs exactly once in the artifact.

    Line endings are those of the artifact, whatever the edit was written with. If `find` does not
    occur, its Unicode form and a line break at the end of the artifact may differ.
    """

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
    line_break = _line_break(text)
    for edit in edits:
        same = (edit.kind, edit.find, edit.text)
        if same not in changes:
            (start, end), reason = find_passage(text, edit.find)
            inserts = edit.kind is EditKind.INSERT_AFTER
            used = marks[start:end] if not reason else b""
            if _EXCLUSIVE in used or (any(used) and not inserts):
                reason = "overlaps"
            if reason:
                unmatched.append((edit, reason))
                continue
            marks[start:end] = bytes([_SHARED if inserts else _EXCLUSIVE]) * (end - start)
            new = _new_text(edit, text[start:end], line_break)
            changes[same] = (end if inserts else start, end, new)
        applied.append(edit)
    return EditResult(_rewrite(text, list(changes.values())), tuple(applied), tuple(unmatched))


def find_passage(text: str, find: str) -> tuple[tuple[int, int], str]:
    """Returns the range of a passage, and why it cannot be used if it is not unique."""
    for spelling in _spellings(text, find):
        start = text.find(spelling)
        if start >= 0:
            # Overlapping matches are counted as one, but there are at least two.
            several = text.find(spelling, start + 1) >= 0
            reason = f"found {max(2, text.count(spelling))} times" if several else ""
            return (start, start + len(spelling)), reason
    return (-1, -1), "not found"


def _spellings(text: str, find: str) -> Iterator[str]:
    """Yields how a passage may be written in a text: exactly, then with what may differ."""
    breaks = [find, _BREAK.sub("\n", find), _BREAK.sub("\r\n", find)] if "\n" in find else [find]
    composed = [unicodedata.normalize("NFC", each) for each in breaks]
    decomposed = [unicodedata.normalize("NFD", each) for each in breaks]
    spellings = dict.fromkeys([*breaks, *composed, *decomposed])
    yield from filter(None, spellings)
    # The last line of a text may have no line break. Anywhere else, dropping it from `find`
    # could match the beginning of a longer line.
    trimmed = (each.rstrip("\r\n") for each in spellings if each.endswith("\n"))
    yield from (each for each in trimmed if each and text.endswith(each))


def _line_break(text: str) -> str:
    """Returns the line ending of a text; empty if it has none or several."""
    breaks, windows = text.count("\n"), text.count("\r\n")
    if windows == breaks:
        return "\r\n" if breaks else ""
    return "" if windows else "\n"


def _new_text(edit: Edit, passage: str, line_break: str) -> str:
    """Returns what an edit writes, with the line endings of the artifact."""
    if edit.kind is EditKind.DELETE:
        return ""
    new = _BREAK.sub(line_break, edit.text) if line_break else edit.text
    # The passage is the last line and has no line break, so its replacement gets none.
    trimmed = edit.find.endswith("\n") and not passage.endswith("\n")
    return new.removesuffix("\n").removesuffix("\r") if trimmed else new


def _rewrite(text: str, changes: Sequence[tuple[int, int, str]]) -> str:
    pieces: list[str] = []
    position = 0
    # An insertion has an empty range, so it sorts before a change that starts at its position.
    for start, end, new in sorted(changes, key=lambda change: change[:2]):
        pieces += [text[position:start], new]
        position = end
    return "".join([*pieces, text[position:]])
