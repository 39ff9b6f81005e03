"""Unified diffs of versions, whose hunks know which findings they answer.

The hunks that a refinement recorded have no context and may be cut, so what is shown is computed
again from the texts, and the findings are looked up by the range of lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from signoff.review.hunks import Change, hunk_header, merged_changes, tie_hunks

CONTEXT = 3
"""Unchanged lines that are shown before and after a change."""
_HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
NO_BREAK = "\\ No newline at end of file"
"""What a unified diff writes after a last line that has no line break."""


@dataclass(frozen=True)
class DiffHunk:
    """One change with the lines around it."""

    header: str
    """`@@ -1,3 +1,4 @@`, with the lines of context counted."""
    lines: tuple[str, ...]
    """Each begins with a space, `-` or `+`."""
    findings: tuple[str, ...] = ()
    """The ids of the findings that it answers."""

    @property
    def added(self) -> int:
        """How many lines it adds."""
        return sum(line.startswith("+") for line in self.lines)

    @property
    def removed(self) -> int:
        """How many lines it removes."""
        return sum(line.startswith("-") for line in self.lines)


def label_key(path: str, header: str) -> str:
    """Returns the name of a recorded hunk: its file and its range of lines without context."""
    return f"{path}\n{header}"


def diff_files(
    before: Mapping[str, str],
    after: Mapping[str, str],
    labels: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> dict[str, list[DiffHunk]]:
    """Returns the hunks of every file that differs, by path.

    `labels` are the findings that each hunk answers, recorded by `label_key`.
    """
    return {path: list(_diff(path, old, new, labels)) for path, old, new in _changed(before, after)}


def tied_labels(
    before: Mapping[str, str],
    after: Mapping[str, str],
    findings: Mapping[str, Sequence[tuple[str, str]]],
) -> dict[str, tuple[str, ...]]:
    """Returns the findings that each hunk answers, judged by the words that it changes.

    For versions that recorded none. `findings` are pairs of an id and its quote, by path.
    """
    return {
        label_key(path, hunk["diff"].partition("\n")[0]): findings_of(hunk)
        for path, old, new in _changed(before, after)
        for hunk in tie_hunks(old, new, (), findings.get(path, ()))
    }


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yields the files that differ between two versions, with their texts."""
    for path in dict.fromkeys([*before, *after]):
        if before.get(path) != after.get(path):
            yield path, before.get(path, ""), after.get(path, "")


def _diff(
    path: str, before: str, after: str, labels: Mapping[str, tuple[str, ...]]
) -> Iterator[DiffHunk]:
    old, new = _lines(before), _lines(after)
    changes, recorded = merged_changes(old, new), _Recorded(path, labels)
    for change, margin in zip(changes, _margins(changes, len(old)), strict=True):
        yield _hunk(old, new, change, margin, recorded.findings(change))


def findings_of(hunk: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the findings that a recorded hunk answers."""
    return tuple(filter(None, (hunk.get("issue"), *hunk.get("also", ()))))


def _lines(text: str) -> list[str]:
    """Returns the lines of a text with their breaks: only the last one may have none."""
    *lines, rest = text.split("\n")
    return [*(f"{line}\n" for line in lines), *([rest] if rest else [])]


class _Recorded:
    """Looks up the findings that were recorded for a change."""

    def __init__(self, path: str, labels: Mapping[str, tuple[str, ...]]) -> None:
        self._path = path
        self._labels = labels

    def findings(self, change: Change) -> tuple[str, ...]:
        exact = self._labels.get(label_key(self._path, hunk_header(change)))
        if exact is not None:
            return exact
        # The recorded range is another one if the end of the file has changed.
        near = [found for other, found in self._ranges if _overlap(change, other)]
        return tuple(dict.fromkeys(each for found in near for each in found))

    @cached_property
    def _ranges(self) -> list[tuple[Change, tuple[str, ...]]]:
        keys = (key.split("\n", 1) for key in self._labels)
        headers = [(header, f"{path}\n{header}") for path, header in keys if path == self._path]
        matches = [(_HEADER.match(header), key) for header, key in headers]
        return [(_change(match), self._labels[key]) for match, key in matches if match]


def _change(match: re.Match[str]) -> Change:
    numbers = [int(each) if each is not None else 1 for each in match.groups()]
    old, old_count, new, new_count = numbers
    # An empty range names the line before it.
    starts = old - (old_count > 0), new - (new_count > 0)
    return Change(starts[0], starts[0] + old_count, starts[1], starts[1] + new_count)


def _overlap(one: Change, other: Change) -> bool:
    old = max(one.old_start, other.old_start) < min(one.old_end, other.old_end)
    return old or max(one.new_start, other.new_start) < min(one.new_end, other.new_end)


def _margins(changes: Sequence[Change], length: int) -> Iterator[tuple[int, int]]:
    """Yields the lines of context before and after each change; no line belongs to two hunks."""
    if not changes:
        return
    before = min(CONTEXT, changes[0].old_start)
    for change, following in pairwise(changes):
        gap = following.old_start - change.old_end
        after = min(CONTEXT, (gap + 1) // 2)
        yield before, after
        before = min(CONTEXT, gap - after)
    yield before, min(CONTEXT, length - changes[-1].old_end)


def _hunk(
    old: Sequence[str],
    new: Sequence[str],
    change: Change,
    margin: tuple[int, int],
    findings: tuple[str, ...],
) -> DiffHunk:
    before, after = margin
    shown = Change(
        change.old_start - before,
        change.old_end + after,
        change.new_start - before,
        change.new_end + after,
    )
    lines = [
        *_signed(" ", old[shown.old_start : change.old_start]),
        *_signed("-", old[change.old_start : change.old_end]),
        *_signed("+", new[change.new_start : change.new_end]),
        *_signed(" ", old[change.old_end : shown.old_end]),
    ]
    return DiffHunk(hunk_header(shown), tuple(lines), findings)


def _signed(sign: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield f"{sign}{line.removesuffix(chr(10))}"
        if not line.endswith("\n"):
            yield NO_BREAK
