"""What a review has read, by whom and with which result, and what it has not read, and why.

A review that leaves files out by rule is complete. One that could not read a file, or ended before
a constraint was read against it, is incomplete, and must never look like one that found nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from signoff.core.words import FindingStatus
from signoff.documents.control_characters import escape_controls
from signoff.review.pure.record import Record

SHOWN_NAMES = 10
"""Names that a line shows; the others are counted, and listed in JSON and in reports."""


class ReaderKind(StrEnum):
    """What someone is who reads a text against a constraint."""

    CRITIC = "critic"
    CHECK = "check"
    HUMAN = "human"


@dataclass(frozen=True)
class Reader(Record):
    """Someone who has read a text, or some of its files, against a constraint."""

    name: str
    kind: ReaderKind
    usable: bool = True
    """Whether anything it answered was a review."""
    decided_by: tuple[str, ...] = ()
    """The humans who decided where it gave no usable review."""

    omit_empty: ClassVar = frozenset({"decided_by"})


@dataclass(frozen=True)
class ConstraintResult:
    """Who has read a text against a constraint, and with which result."""

    constraint: str
    readers: tuple[Reader, ...] = ()
    findings: Mapping[FindingStatus, Mapping[str, int]] = field(default_factory=dict)
    """How many findings it has that are not fixed, by status and severity."""
    changed: int = 0
    """How many files have changed since they were read; 1 for a single text."""

    def to_json(self) -> dict[str, Any]:
        """Returns it for programs, with the same words that people read."""
        return {
            "constraint": self.constraint,
            "result": self.words,
            "read_by": [each.to_json() for each in self.readers],
            "findings": {status.value: dict(n) for status, n in self.findings.items()},
            "changed_since": self.changed,
        }

    @property
    def words(self) -> str:
        """The result in a few words: `passed by ann; auto gave no usable review`."""
        if not self.readers:
            return "nobody has read it"
        found = ", ".join(
            f"{number} {severity} {status.words}"
            for status, counts in self.findings.items()
            for severity, number in counts.items()
        )
        # A human who decided in place of a critic has read the text, so their name belongs to those
        # who passed it.
        humans = [name for each in self.readers for name in each.decided_by]
        names = [each.name for each in self.readers if each.usable]
        who = " and ".join(dict.fromkeys([*names, *humans])) or "nobody"
        parts = [f"{found}; read by {who}" if found else f"passed by {who}"]
        parts += [f"{each.name} gave no usable review" for each in self.readers if not each.usable]
        if self.changed:
            parts = [f"not read since the last change; before it: {parts[0]}", *parts[1:]]
        return "; ".join(parts)


@dataclass(frozen=True)
class CoverageGap(Record):
    """A file that was not read, or one of a project's constraints."""

    path: str
    """The path of a file, or `constraint NAME`."""
    reason: str


@dataclass(frozen=True)
class ReviewCoverage:
    """What a review has not read."""

    left_out: Sequence[CoverageGap] = ()
    """By rule: what is ignored, generated, binary and so on."""
    missed: Sequence[CoverageGap] = field(default=())
    """What should have been read."""

    @property
    def complete(self) -> bool:
        """Whether everything was read that no rule leaves out."""
        return not self.missed

    def to_json(self) -> dict[str, Any]:
        """Returns it for programs."""
        return {
            "complete": self.complete,
            "not_read": [each.to_json() for each in self.missed],
            "left_out": [each.to_json() for each in self.left_out],
        }

    def lines(self, most: int = SHOWN_NAMES) -> Iterator[str]:
        """Yields a line for each reason, with the names; what is missing comes first."""
        yield from describe_missed(self.missed, most)
        for why, names in by_reason(self.left_out).items():
            yield f"left out ({why}): {_listed(names, most)}"


def describe_missed(missed: Sequence[CoverageGap], most: int = SHOWN_NAMES) -> Iterator[str]:
    """Yields a line for each reason for which something was not read."""
    for why, names in by_reason(missed).items():
        yield f"not read ({why}): {_listed(names, most)}"


def by_reason(entries: Sequence[CoverageGap]) -> Mapping[str, list[str]]:
    """Returns names by the reason for which they were not read."""
    groups: dict[str, list[str]] = {}
    for each in sorted(entries, key=lambda entry: entry.reason):
        groups.setdefault(each.reason, []).append(each.path)
    return groups


def _listed(names: Sequence[str], most: int) -> str:
    left = len(names) - most
    # A line break in a name must not begin a line of its own.
    shown = [escape_controls(each).replace("\n", "\\n") for each in names[:most]]
    return ", ".join(shown) + (f" and {left} more" if left > 0 else "")
