"""What changed between two versions, hunk by hunk, and which finding each hunk addresses.

A refinement records its hunks without context, and cuts long ones. So what is shown later is
computed again from the texts, and the findings are looked up by the range of lines.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import Any

from signoff.review.pure.critique import quotes_nothing
from signoff.review.pure.evidence import ArtifactText
from signoff.review.pure.work_order import Edit, EditKind, find_passage

MOST_HUNKS = 500
LONGEST_HUNK = 4_000
"""Characters that are kept of a hunk; the artifacts themselves are stored in full."""
MOST_COMPARED = 1_000_000_000
"""Pairs of lines that a diff may compare, which takes about 120 MB and a second.

The changed part of a longer text is reported as one change.
"""
MOST_MARKS = 80
"""Characters before and after a quote that are looked at for marks."""

_WORD = re.compile(r"[^\W_]+")
_MARKS_BEFORE = re.compile(r"(?:\A[\W_]+|(?:[^\w\s]|_)*)\Z")
_MARKS_AFTER = re.compile(r"[\W_]+\Z|(?:[^\w\s]|_)*")


@dataclass(frozen=True)
class Change:
    """A range of old lines and the new lines that replace it; the ends are exclusive."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def tie_hunks(
    before: str, after: str, edits: Sequence[Edit], findings: Sequence[tuple[str, str]]
) -> list[dict[str, Any]]:
    """Returns every change as a hunk of a unified diff, with the finding it addresses.

    `findings` are pairs of an id and its quote; the quote is empty or `OMISSION` if something
    is missing. A hunk belongs to the edit that it makes, else to the quote whose words it changes;
    a change elsewhere in the same line does not count. `issue` is None for a change that no finding
    asked for. `also` lists further findings about these words.
    """
    # Lines as `diff_files` has them: what is recorded here is found again by its range of lines.
    old, new = _lines(before), _lines(after)
    all_changes = merged_changes(old, new)
    # What the engine applied is certain, and what a change did to a quote is an inference, so exact
    # edits come first.
    claims = [*_edit_claims(before, edits), *_quote_claims(before, findings)]
    hunks = [_tied_hunk(old, new, change, claims) for change in all_changes[:MOST_HUNKS]]
    _tie_omission(all_changes, hunks, [id_ for id_, quote in findings if quotes_nothing(quote)])
    if len(all_changes) > MOST_HUNKS:
        hunks.append({"diff": f"({len(all_changes) - MOST_HUNKS} more changes)", "issue": None})
    return hunks


def tie_requests(hunks: Sequence[dict[str, Any]], requests: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the hunks with all others tied to the requests, if nothing else was to be done."""
    if not requests:
        return list(hunks)
    first, *others = requests
    claim = {"issue": first, **({"also": others} if others else {})}
    return [hunk if hunk["issue"] is not None else {**hunk, **claim} for hunk in hunks]


def answered_by(hunks: Sequence[Mapping[str, Any]]) -> set[str]:
    """Returns the findings that some hunk addresses."""
    return {each for hunk in hunks for each in findings_of(hunk)}


def word_change_pct(before: str, after: str) -> float:
    """Returns the change in the number of words, in percent of the number before."""
    words_before, words_after = len(before.split()), len(after.split())
    if words_before == 0:
        return 100.0 if words_after else 0.0
    return abs(words_after - words_before) * 100 / words_before


def changes(old: Sequence[str], new: Sequence[str]) -> Iterator[Change]:
    """Yields every change between two texts, in order; adjacent changed lines are one change."""
    from rapidfuzz.distance import Indel

    head = _common_prefix(old, new)
    tail = _common_prefix(old[head:][::-1], new[head:][::-1])
    end = (len(old) - tail, len(new) - tail)
    # Equal lines get equal numbers: rapidfuzz would compare strings by their hashes.
    numbers: dict[str, int] = {}
    left = [numbers.setdefault(line, len(numbers)) for line in old[head : end[0]]]
    right = [numbers.setdefault(line, len(numbers)) for line in new[head : end[1]]]
    equal = []
    # A text that was rewritten from end to end has no useful diff, and finding that out would take
    # minutes and all memory.
    if len(left) * len(right) <= MOST_COMPARED:
        equal = [block for block in Indel.opcodes(left, right) if block.tag == "equal"]
    # A change is what lies between two equal blocks.
    starts = [(head, head), *((head + b.src_end, head + b.dest_end) for b in equal)]
    ends = [*((head + b.src_start, head + b.dest_start) for b in equal), end]
    for low, high in zip(starts, ends, strict=True):
        if low != high:
            yield Change(low[0], high[0], low[1], high[1])


def merged_changes(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """Returns every change, without those that an empty line separates by accident.

    If a paragraph is added or removed next to a changed one, a diff may pair the wrong two.
    """
    merged: list[Change] = []
    for change in changes(old, new):
        last = merged[-1] if merged else None
        between = old[last.old_end : change.old_start] if last else ()
        if last is None or any(map(str.strip, between)) or not _unsettled(old, new, last, change):
            merged.append(change)
            continue
        merged[-1] = Change(last.old_start, change.old_end, last.new_start, change.new_end)
    return merged


def _unsettled(old: Sequence[str], new: Sequence[str], *pair: Change) -> bool:
    """Whether one of two changes adds or removes a paragraph, and the other one does not."""
    paragraphs = []
    for change in pair:
        lines = old[change.old_start : change.old_end], new[change.new_start : change.new_end]
        one_side = [*lines[0], *lines[1]] if not all(lines) else []
        paragraphs.append(any(not line.strip() for line in one_side))
    return paragraphs[0] != paragraphs[1]


def _common_prefix(old: Sequence[str], new: Sequence[str]) -> int:
    """Returns the number of equal lines at the start of two texts."""
    pairs = zip(old, new, strict=False)
    different = (index for index, (left, right) in enumerate(pairs) if left != right)
    return next(different, min(len(old), len(new)))


@dataclass(frozen=True)
class _Claim:
    """A passage that a finding is about, or that an edit changes."""

    issue: str
    first: int
    """The line it begins in."""
    last: int
    """The line it ends in."""
    passage: str = ""
    """The passage as the artifact has it; empty if the edit only adds text after it."""
    text: str = ""
    """The first line that the edit writes."""

    def explains(self, old: Sequence[str], new: Sequence[str], change: Change) -> bool:
        """Whether the change takes words from the passage, or writes the text of the edit."""
        first, last = change.old_start, change.old_end
        # Text that is added after a passage may be a paragraph, with an empty line before it.
        if self.first > last or first > self.last + 2:
            return False
        # A passage may begin before the changed lines and end after them, with a line break.
        head, tail = ["\n", *old[self.first : first]], old[last : self.last + 1]
        before, after = (
            "".join([*head, *lines, *tail])
            for lines in (old[first:last], new[change.new_start : change.new_end])
        )
        return _lost(self.passage, before, after) or _lost(self.text, after, before)


def _lost(words: str, before: str, after: str) -> bool:
    return bool(words) and before.count(words) > after.count(words)


def _edit_claims(before: str, edits: Sequence[Edit]) -> Iterator[_Claim]:
    starts = list(accumulate((len(line) + 1 for line in before.split("\n")), initial=0))
    for edit in edits:
        (start, end), _ = find_passage(before, edit.find)
        if start < 0 or not edit.issue:
            continue
        first, last = (bisect_right(starts, each) - 1 for each in (start, end - 1))
        passage = "" if edit.kind is EditKind.INSERT_AFTER else before[start:end]
        text = edit.text.strip().partition("\n")[0].rstrip()
        yield _Claim(edit.issue, first, last, passage, text)


def _quote_claims(before: str, findings: Sequence[tuple[str, str]]) -> Iterator[_Claim]:
    text, lines = ArtifactText(before), before.split("\n")
    for issue, quote in findings:
        if quotes_nothing(quote):
            continue
        for first, last in text.lines_of(quote):
            around = "\n".join(lines[first : last + 1])
            yield _Claim(issue, first, last, _passage(around, quote) or around)


def _passage(text: str, quote: str) -> str:
    """Returns what a text has in place of a quote; "" if it cannot be found word for word.

    Spaces and marks may differ, and changing them may be the fix. So the marks around the quote
    belong to it, and what precedes and follows it if its line has no other words.
    """
    start = text.find(quote)
    end = start + len(quote)
    if start < 0:
        words = _WORD.findall(quote)
        found = re.search(r"[\W_]+".join(words), text, re.IGNORECASE) if words else None
        if found is None:
            return ""
        start, end = found.span()
    before, after = text[:start].rpartition("\n")[2], text[end:].partition("\n")[0]
    marks = _MARKS_BEFORE.search(before[-MOST_MARKS:]), _MARKS_AFTER.match(after[:MOST_MARKS])
    left, right = (len(each[0]) if each else 0 for each in marks)
    return text[start - left : end + right]


def _tied_hunk(
    old: Sequence[str], new: Sequence[str], change: Change, claims: Sequence[_Claim]
) -> dict[str, Any]:
    answered = [claim.issue for claim in claims if claim.explains(old, new, change)]
    issues = list(dict.fromkeys(answered))
    hunk: dict[str, Any] = {
        "diff": _hunk_text(old, new, change),
        "issue": issues[0] if issues else None,
    }
    return {**hunk, "also": issues[1:]} if issues[1:] else hunk


def _tie_omission(
    all_changes: Sequence[Change], hunks: Sequence[dict[str, Any]], missing: Sequence[str]
) -> None:
    """Ties the only insertion without a finding to the only finding about something missing.

    With several of either, nothing in the text shows which of them belong together.
    """
    # Something that was missing has no words to look for. If one thing was missing and one passage
    # was added, that is the answer; with more of either it would be a guess.
    inserted = [
        hunk
        for change, hunk in zip(all_changes, hunks, strict=False)
        if change.old_start == change.old_end and hunk["issue"] is None
    ]
    if len(inserted) == len(missing) == 1:
        inserted[0]["issue"] = missing[0]


def _hunk_text(old: Sequence[str], new: Sequence[str], change: Change) -> str:
    removed = _signed("-", old[change.old_start : change.old_end])
    added = _signed("+", new[change.new_start : change.new_end])
    text = "\n".join([hunk_header(change), *removed, *added])
    return text if len(text) <= LONGEST_HUNK else text[:LONGEST_HUNK] + "…"


def hunk_header(change: Change) -> str:
    """Returns the line ranges of a change as a unified diff writes them."""
    old = _range(change.old_start, change.old_end)
    return f"@@ -{old} +{_range(change.new_start, change.new_end)} @@"


def _range(start: int, end: int) -> str:
    """Returns a line range as in a unified diff, where an empty one names the line before it."""
    count = end - start
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"


CONTEXT = 3
"""Unchanged lines that are shown before and after a change."""
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
    context: int = CONTEXT,
) -> dict[str, list[DiffHunk]]:
    """Returns the hunks of every file that differs, by path, with so many lines around them.

    `labels` are the findings that each hunk answers, recorded by `label_key`.
    """
    return {
        path: list(_diff(path, _lines(old), _lines(new), labels, context))
        for path, old, new in _changed(before, after)
    }


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
    path: str,
    old: Sequence[str],
    new: Sequence[str],
    labels: Mapping[str, tuple[str, ...]],
    context: int,
) -> Iterator[DiffHunk]:
    changes = merged_changes(old, new)
    for change, margin in zip(changes, _margins(changes, len(old), context), strict=True):
        findings = labels.get(label_key(path, hunk_header(change)), ())
        yield _hunk(old, new, change, margin, findings)


def findings_of(hunk: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the findings that a recorded hunk answers."""
    return tuple(filter(None, (hunk.get("issue"), *hunk.get("also", ()))))


def _lines(text: str) -> list[str]:
    """Returns the lines of a text with their breaks: only the last one may have none."""
    *lines, rest = text.split("\n")
    return [*(f"{line}\n" for line in lines), *([rest] if rest else [])]


def _margins(changes: Sequence[Change], length: int, most: int) -> Iterator[tuple[int, int]]:
    """Yields the lines of context before and after each change; no line belongs to two hunks."""
    if not changes:
        return
    before = min(most, changes[0].old_start)
    for change, following in pairwise(changes):
        gap = following.old_start - change.old_end
        after = min(most, (gap + 1) // 2)
        yield before, after
        before = min(most, gap - after)
    yield before, min(most, length - changes[-1].old_end)


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


def unified_diff(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Returns what changed, file by file, as a patch that `git apply` takes; empty if nothing."""
    changed = (each for each in _changed(before, after) if each[0] in after)
    return "".join(_file_diff(path, old, new) for path, old, new in changed)


def _file_diff(path: str, old: str, new: str) -> str:
    from difflib import unified_diff as compared

    lines = compared(_lines(old), _lines(new), f"a/{path}", f"b/{path}")
    return "".join(line if line.endswith("\n") else f"{line}\n{NO_BREAK}\n" for line in lines)
