"""Reads the verdict of a review from its `@@@REVIEW_META` block.

    @@@REVIEW_META
    verdict: FAIL
    issues_total: 3
    issues_critical: 1
    missing_inputs: 0
    @@@

A review decides whether a session is finished, so a verdict that is not clear counts for
nothing: the user fixes the file instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from signoff.review.reply_text import Material

BEGIN = "@@@REVIEW_META"
END = "@@@"

_COUNTS = ("issues_total", "issues_critical", "missing_inputs")
_FIELDS = ("verdict", *_COUNTS)
_COUNT = re.compile(r"[0-9]{1,9}")


class ReviewVerdict(StrEnum):
    """What a review says about the code."""

    PASS = "PASS"  # noqa: S105  # not a password
    FAIL = "FAIL"


@dataclass(frozen=True)
class ReviewMeta:
    """The verdict of a review, with the counts that it is based on."""

    verdict: ReviewVerdict
    issues_total: int
    issues_critical: int
    missing_inputs: int
    """Files or facts that the reviewer would have needed."""

    @property
    def summary(self) -> str:
        """The verdict and its counts on one line."""
        return (
            f"{self.verdict} | issues={self.issues_total} (critical={self.issues_critical}) "
            f"| missing_inputs={self.missing_inputs}"
        )

    @property
    def contradiction(self) -> str:
        """Why the verdict cannot be true, given its counts; empty if it can."""
        issues = "issue" if self.issues_critical == 1 else "issues"
        critical = f"{self.issues_critical} critical {issues}"
        if self.issues_critical > self.issues_total:
            return f"{critical} of {self.issues_total} in total"
        if self.verdict is ReviewVerdict.PASS and self.issues_critical:
            return f"the verdict is PASS with {critical}"
        if self.verdict is ReviewVerdict.FAIL and not (self.issues_total or self.missing_inputs):
            return "the verdict is FAIL without an issue or a missing input"
        return ""


def parse_review_meta(text: str) -> ReviewMeta:
    """Returns what the first block of a review says; raises `ValueError` if it is not valid."""
    block = next(_blocks(text), None)
    if block is None:
        raise ValueError(f"the review has no {BEGIN} block")
    return _parse(block)


def check_review_meta(text: str, material: Material | None = None) -> ReviewMeta:
    """Returns the verdict of a review, if it can be relied on; raises `ValueError` if not.

    Unlike `parse_review_meta`, it refuses a verdict that its counts contradict and blocks that
    disagree, and it does not count a block that is quoted from the `material`, such as code
    that contains one.
    """
    blocks = [*_blocks(text)]
    if not blocks:
        raise ValueError(f"the review has no {BEGIN} block")
    # Code under review can contain such a block, perhaps put there on purpose. A block that the
    # material has as well is taken for a quotation.
    own = [block for block in blocks if material is None or not material.contains("\n".join(block))]
    if not own:
        raise ValueError(f"the {BEGIN} block of the review is quoted from what it reviews")
    found = [*map(_parse, own)]
    # Which of them counts would be a guess, and the guess would decide whether code is delivered.
    if len(set(found)) > 1:
        raise ValueError(f"the review has {len(own)} {BEGIN} blocks that disagree")
    if found[0].contradiction:
        raise ValueError(f"the verdict contradicts its counts: {found[0].contradiction}")
    return found[0]


def _blocks(text: str) -> Iterator[Sequence[str]]:
    """Yields the lines of each block, without the markers."""
    block: list[str] | None = None
    begin = 0
    for number, line in enumerate(text.split("\n"), start=1):
        word = line.strip().upper()
        if word == BEGIN and block is not None:
            break
        if word == BEGIN:
            block, begin = [], number
        elif word == END and block is not None:
            yield block
            block = None
        elif block is not None:
            block.append(line)
    if block is not None:
        raise ValueError(f"the {BEGIN} block of line {begin} is not closed by {END}")


def _parse(block: Sequence[str]) -> ReviewMeta:
    fields = _fields(block)
    missing = [name for name in _FIELDS if name not in fields]
    if missing:
        raise ValueError(f"the {BEGIN} block lacks: {', '.join(missing)}")
    return ReviewMeta(
        _verdict(fields["verdict"]), *(_count(name, fields[name]) for name in _COUNTS)
    )


def _fields(block: Sequence[str]) -> Mapping[str, str]:
    fields: dict[str, str] = {}
    for line in block:
        key, _, value = line.partition(":")
        name = key.strip().lower()
        if name not in _FIELDS:
            continue
        if name in fields:
            raise ValueError(f"the {BEGIN} block has two lines for {name}")
        fields[name] = value.strip()
    return fields


def _verdict(value: str) -> ReviewVerdict:
    try:
        return ReviewVerdict(value.upper())
    except ValueError:
        raise ValueError(f"verdict is {value[:40]!r}; write PASS or FAIL") from None


def _count(name: str, value: str) -> int:
    if not _COUNT.fullmatch(value):
        raise ValueError(f"{name} is {value[:40]!r}; write a whole number")
    return int(value)
