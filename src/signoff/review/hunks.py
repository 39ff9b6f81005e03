"""Lists what a refinement changed, hunk by hunk, and which finding each hunk addresses."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from signoff.review.critique import quotes_nothing
from signoff.review.edit import Edit, EditKind, find_passage
from signoff.review.evidence import ArtifactText

MOST_HUNKS = 500
LONGEST_HUNK = 4_000
"""Characters that are kept of a hunk; the artifacts themselves are stored in full."""
MOST_COMPARED = 1_000_000_000
"""Pairs of lines that a diff may compare, which takes about 120 MB and a second.

The changed part of a longer text is reported as one change.
"""


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
    is missing. A hunk belongs to the edit, else to the quote, whose lines it touches. `issue` is
    None for a change that no finding asked for. `also` lists further findings about these lines.
    """
    old, new = before.split("\n"), after.split("\n")
    all_changes = list(changes(old, new))
    claims = [*_edit_claims(before, edits), *_quote_claims(before, findings)]
    hunks = [_hunk(old, new, change, claims, findings) for change in all_changes[:MOST_HUNKS]]
    if len(all_changes) > MOST_HUNKS:
        hunks.append({"diff": f"({len(all_changes) - MOST_HUNKS} more changes)", "issue": None})
    return hunks


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
    if len(left) * len(right) <= MOST_COMPARED:
        equal = [block for block in Indel.opcodes(left, right) if block.tag == "equal"]
    # A change is what lies between two equal blocks.
    starts = [(head, head), *((head + b.src_end, head + b.dest_end) for b in equal)]
    ends = [*((head + b.src_start, head + b.dest_start) for b in equal), end]
    for low, high in zip(starts, ends, strict=True):
        if low != high:
            yield Change(low[0], high[0], low[1], high[1])


def _common_prefix(old: Sequence[str], new: Sequence[str]) -> int:
    """Returns the number of equal lines at the start of two texts."""
    pairs = zip(old, new, strict=False)
    different = (index for index, (left, right) in enumerate(pairs) if left != right)
    return next(different, min(len(old), len(new)))


@dataclass(frozen=True)
class _Claim:
    """The lines that an edit or a quote is about, including the last one."""

    first: int
    last: int
    issue: str

    def touches(self, change: Change) -> bool:
        if change.old_start == change.old_end:  # an insertion between two lines
            return self.first <= change.old_start <= self.last + 1
        return self.first < change.old_end and change.old_start <= self.last


def _edit_claims(before: str, edits: Sequence[Edit]) -> Iterator[_Claim]:
    starts = list(accumulate((len(line) + 1 for line in before.split("\n")), initial=0))
    for edit in edits:
        (start, end), _ = find_passage(before, edit.find)
        if start < 0 or not edit.issue:
            continue
        # Inserted text appears after its anchor, however many lines the anchor has.
        first, last = (end, end) if edit.kind is EditKind.INSERT_AFTER else (start, end - 1)
        yield _Claim(bisect_right(starts, first) - 1, bisect_right(starts, last) - 1, edit.issue)


def _quote_claims(before: str, findings: Sequence[tuple[str, str]]) -> Iterator[_Claim]:
    text = ArtifactText(before)
    for issue, quote in findings:
        if not quotes_nothing(quote):
            yield from (_Claim(first, last, issue) for first, last in text.lines_of(quote))


def _hunk(
    old: Sequence[str],
    new: Sequence[str],
    change: Change,
    claims: Sequence[_Claim],
    findings: Sequence[tuple[str, str]],
) -> dict[str, Any]:
    issues = [claim.issue for claim in claims if claim.touches(change)]
    issues = list(dict.fromkeys(issues or _other_matches(old, change, findings)))
    hunk: dict[str, Any] = {
        "diff": _diff(old, new, change),
        "issue": issues[0] if issues else None,
    }
    return {**hunk, "also": issues[1:]} if issues[1:] else hunk


def _other_matches(
    old: Sequence[str], change: Change, findings: Sequence[tuple[str, str]]
) -> list[str]:
    """Returns the findings whose quotes also occur in these lines.

    An insertion has no old lines. It counts for the one finding about something missing.
    """
    if change.old_start == change.old_end:
        missing = [issue for issue, quote in findings if quotes_nothing(quote)]
        return missing if len(missing) == 1 else []
    removed = "\n".join(old[change.old_start : change.old_end])[:LONGEST_HUNK]
    quoting = ((issue, quote) for issue, quote in findings if not quotes_nothing(quote))
    return [issue for issue, quote in quoting if quote in removed]


def _diff(old: Sequence[str], new: Sequence[str], change: Change) -> str:
    removed = [f"-{line}" for line in old[change.old_start : change.old_end]]
    added = [f"+{line}" for line in new[change.new_start : change.new_end]]
    header = (
        f"@@ -{_range(change.old_start, change.old_end)} "
        f"+{_range(change.new_start, change.new_end)} @@"
    )
    text = "\n".join([header, *removed, *added])
    return text if len(text) <= LONGEST_HUNK else text[:LONGEST_HUNK] + "…"


def _range(start: int, end: int) -> str:
    """Returns a line range as in a unified diff, where an empty one names the line before it."""
    count = end - start
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"
