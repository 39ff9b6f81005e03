"""What is reviewed: one text, or a set of files; and where in it a quote is.

A single text is a set with one file that has no name, so findings, quotes and versions have one
mechanism. Lines and columns count from 1, and columns count characters (Unicode code points).

Equal passages are told apart by the nearest distinct lines around them, and where these are equal
too, by their order. In a new version a passage is first looked for between the same lines; the
passages that are left over are aligned by their order and by their old lines. So a finding, and a
decision about it, is about one passage, wherever that moves.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from signoff.core.digest import SHORT, digest, text_digest
from signoff.core.words import FindingStatus
from signoff.review.pure.evidence import NEAREST_OTHERS, ArtifactText, Occurrence, context_digests
from signoff.review.pure.finding import Finding, normalize

_STATED_LINE = re.compile(
    r"\blines?\s*(\d{1,9})\b|^\s*L(\d{1,9})\b|^[^:]+:(\d{1,9})\b|^\s*(\d{1,9})\s*$", re.IGNORECASE
)


def stated_line(location: str) -> int:
    """Returns the line that a critic names as a location, such as `a.py:3` or `line 3`; else 0."""
    found = _STATED_LINE.search(location)
    return int(next(filter(None, found.groups()))) if found else 0


def nearest(found: Sequence[Occurrence], line: int) -> Occurrence:
    """Returns the occurrence on a line, else the one nearest to it."""
    after = bisect_left(found, line, key=lambda each: each.line)
    # A passage of several lines may begin before a line that it covers.
    around = found[max(0, after - 1) : after + 1]
    return min(around, key=lambda each: 0 if _covers(each, line) else abs(each.line - line))


def with_occurrence(finding: Finding, found: Occurrence) -> Finding:
    """Returns a finding that is about an occurrence of its passage."""
    return replace(finding, **occurrence_fields(found))


def occurrence_fields(found: Occurrence) -> dict[str, Any]:
    """Returns the fields of a finding that say which occurrence it is about."""
    return {
        "line": found.line,
        "before": found.before,
        "after": found.after,
        "occurrence": found.number,
        "occurrences": found.total,
        "others": found.others,
    }


def place(
    findings: Iterable[Finding], text_of: Callable[[str], ArtifactText]
) -> dict[str, Occurrence]:
    """Returns where findings are in a version of their files, by id; without those that are gone.

    Findings of one rule that were about different passages are never placed on the same one.
    """
    groups: dict[tuple[object, ...], list[Finding]] = {}
    found: dict[tuple[object, ...], tuple[Occurrence, ...]] = {}
    for each in findings:
        equal = () if each.omission else text_of(each.path).occurrences(each.quote)
        if equal:
            # Quotes that are written differently and mean the same passages share a tuple.
            about = (each.constraint, normalize(each.rule), each.path, each.subject)
            key: tuple[object, ...] = (*about, id(equal))
            groups.setdefault(key, []).append(each)
            found[key] = equal
    placed: dict[str, Occurrence] = {}
    for key, group in groups.items():
        # Screens look for one finding after the other: comparing all passages each time is slow.
        same = _unmoved(group[0], found[key]) if len(group) == 1 else None
        placed |= {group[0].id: same} if same is not None else _align(group, found[key])
    return placed


def _unmoved(finding: Finding, found: Sequence[Occurrence]) -> Occurrence | None:
    """Returns the passage of a finding if it is where it was, between the same lines."""
    if finding.occurrences != len(found) or not finding.occurrence:
        return None
    same = found[finding.occurrence - 1]
    return same if same.context == (finding.before, finding.after) else None


_Seat = Sequence[Finding]
"""Findings that were about one passage, which has to be found again."""


def _align(findings: Sequence[Finding], found: Sequence[Occurrence]) -> dict[str, Occurrence]:
    # What is fixed comes last: its passage is usually gone, and must not take another one's.
    fixed = [each for each in findings if each.status is FindingStatus.FIXED]
    alive = [each for each in findings if each.status is not FindingStatus.FIXED]
    placed: dict[str, Occurrence] = {}
    free = list(found)
    for group in (alive, fixed):
        by_seat = _align_seats(_seats(group), free, len(found))
        taken = {each.number for _, each in by_seat}
        free = [each for each in free if each.number not in taken]
        placed |= {f.id: each for seat, each in by_seat for f in seat}
    # A fixed finding may be about a passage that a living one is about as well.
    for each in (each for each in fixed if each.id not in placed):
        same = [o for o in found if o.line == each.line and o.context == (each.before, each.after)]
        if same:
            placed[each.id] = same[0]
    return placed


def _seats(findings: Iterable[Finding]) -> list[_Seat]:
    seats: dict[tuple[object, ...], list[Finding]] = {}
    for each in findings:
        # The order comes first: two passages on one line are two.
        old = (each.line, each.occurrence, each.before, each.after)
        seats.setdefault(old, []).append(each)
    return [seats[old] for old in sorted(seats, key=lambda old: old[:2])]


_Pairs = list[tuple[_Seat, Occurrence]]


def _align_seats(seats: Sequence[_Seat], found: Sequence[Occurrence], total: int) -> _Pairs:
    """Pairs passages of an earlier version with those of this one, the certain ones first."""
    # The lines around a passage are the best sign that it is the same one: they move with it.
    by_context: dict[tuple[str, str], list[Occurrence]] = {}
    for each in found:
        by_context.setdefault(each.context, []).append(each)
    waiting: dict[tuple[str, str], list[_Seat]] = {}
    for seat in seats:
        waiting.setdefault((seat[0].before, seat[0].after), []).append(seat)
    pairs: _Pairs = []
    for context, group in waiting.items():
        equal = by_context.get(context, [])
        in_order = len(group) == len(equal)
        pairs += zip(group, equal, strict=True) if in_order else _nearest(group, equal, total)
    done = {id(seat) for seat, _ in pairs}
    taken = {each.number for _, each in pairs}
    left = [seat for seat in seats if id(seat) not in done]
    return [*pairs, *_nearest(left, [each for each in found if each.number not in taken], total)]


def _nearest(seats: Sequence[_Seat], found: Sequence[Occurrence], total: int) -> _Pairs:
    """Pairs passages by order if nothing was added or removed, else by line or the nearest one."""
    pairs: _Pairs = []
    left, free = list(seats), list(found)
    # Those that are where they were come first: the others must not take their places.
    for exact in (True, False):
        for seat in list(left):
            chosen = _choice(seat[0], free, total, exact=exact)
            if chosen is not None:
                pairs.append((seat, chosen))
                free.remove(chosen)
                left.remove(seat)
    return pairs


def _choice(
    known: Finding, free: Sequence[Occurrence], total: int, *, exact: bool
) -> Occurrence | None:
    after = bisect_left(free, known.line, key=lambda each: each.line)
    around = free[max(0, after - NEAREST_OTHERS) : after + NEAREST_OTHERS]
    # If as many equal passages are left as there were, nothing was added or removed between them,
    # so the third one is still the third.
    by_order = known.occurrence if known.occurrences == total else 0
    likely = [each for each in around if not _is_another(each, known)]
    # A decision must not move to a passage that it was never about. An open finding may.
    possible = likely if exact or known.status is FindingStatus.DISMISSED else likely or around
    if exact:
        possible = [
            each
            for each in likely
            if (each.number == by_order if by_order else each.line == known.line)
        ]
    in_order = sorted(possible, key=lambda e: (e.number != by_order, abs(e.line - known.line)))
    return next(iter(in_order), None)


def _is_another(found: Occurrence, known: Finding) -> bool:
    """Whether the lines around a passage are rather those of an equal one than a finding's own."""
    own = context_digests(known.before, known.after)
    return any(_agreement(found.digest, own, other) < 0 for other in known.others)


def _agreement(now: str, own: str, other: str) -> int:
    """Returns more than zero if lines agree with a finding's own, less if with another's."""
    sides = (slice(0, len(own) // 2), slice(len(own) // 2, None))
    agree = [
        (now[side] == own[side]) - (now[side] == other[side])
        for side in sides
        if own[side] != other[side]
    ]
    # If one side speaks for each, nobody knows which passage it is: that is not enough.
    return sum(agree) or (-1 if any(agree) else 0)


def _covers(each: Occurrence, line: int) -> bool:
    return each.line <= line <= each.end_line


UNNAMED = ""
"""The path of an artifact that is one text."""


def version_digest(artifact: str) -> str:
    """Returns the digest that names a version of a text."""
    return text_digest(artifact)[:SHORT]


class ArtifactVersion:
    """One version of what is reviewed; texts are prepared for quotes when they are first used."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = files
        self._texts: dict[str, ArtifactText] = {}
        self._digests: dict[str, str] = {}

    @classmethod
    def of(cls, content: str | Mapping[str, str] | ArtifactVersion) -> ArtifactVersion:
        """Returns an artifact for one text, or for texts by path."""
        if isinstance(content, ArtifactVersion):
            return content
        return cls({UNNAMED: content} if isinstance(content, str) else content)

    def __bool__(self) -> bool:
        """Whether there is any text."""
        return any(self.files.values())

    def text(self, path: str = UNNAMED) -> ArtifactText:
        """Returns the text of a file for looking up quotes; a missing file is empty."""
        if path not in self._texts:
            self._texts[path] = ArtifactText(self.files.get(path, ""))
        return self._texts[path]

    def digest(self, path: str = UNNAMED) -> str:
        """Returns the digest that names this version of a file."""
        if path not in self._digests:
            self._digests[path] = version_digest(self.files.get(path, ""))
        return self._digests[path]

    @property
    def version(self) -> str:
        """The digest that names this version of the whole artifact."""
        if list(self.files) == [UNNAMED]:
            return self.digest()
        return digest([[path, self.digest(path)] for path in sorted(self.files)])[:SHORT]


@dataclass(frozen=True)
class Location:
    """Where a passage is; columns are None if the quote is not in the text letter by letter."""

    path: str
    line: int
    end_line: int
    column: int | None = None
    end_column: int | None = None
    """The column after the last character."""

    def __str__(self) -> str:
        """Returns `path:line:column`, without the parts that are not known."""
        parts = [self.path, self.line, self.column]
        return ":".join(str(part) for part in parts if part not in (None, ""))


def locate(
    artifact: ArtifactVersion, quote: str, path: str = UNNAMED, line: int = 0
) -> Location | None:
    """Returns where a quote is in a file; None if it is not there.

    Of several equal passages it is the one on a line, or nearest to it.
    """
    if path not in artifact.files or not (found := artifact.text(path).occurrences(quote)):
        return None
    return _location(artifact, quote, path, nearest(found, line))


def locate_finding(artifact: ArtifactVersion, finding: Finding) -> Location | None:
    """Returns where a finding is; None if its passage is gone, or something is missing.

    Then only `finding.path` is known, which is empty for a single text.
    """
    if finding.path not in artifact.files:
        return None
    found = place([finding], artifact.text).get(finding.id)
    return _location(artifact, finding.quote, finding.path, found) if found is not None else None


def _location(artifact: ArtifactVersion, quote: str, path: str, found: Occurrence) -> Location:
    columns = _columns(artifact, path, quote.strip(), found)
    if columns is None:
        return Location(path, found.line, found.end_line)
    start, end_line, end = columns
    return Location(path, found.line, end_line + 1, start + 1, end + 1)


def _columns(
    artifact: ArtifactVersion, path: str, quote: str, found: Occurrence
) -> tuple[int, int, int] | None:
    """Returns the first column of a literal quote, and its last line and column, from 0."""
    text, starts = artifact.files[path], artifact.text(path).line_starts
    begin = starts[found.line - 1]
    line_end = starts[found.line] if found.line < len(starts) else len(text) + 1
    start = text.find(quote, begin, line_end + len(quote))
    if start < 0 or start >= line_end:
        return None
    end = start + len(quote)
    last_break = text.rfind("\n", 0, end)
    return start - begin, bisect_right(starts, end) - 1, end - last_break - 1
