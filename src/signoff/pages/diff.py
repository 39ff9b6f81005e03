"""Diffs as HTML: hunks with the findings they answer, and the words that changed in a line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from signoff.pages.html import Content, Markup, join, tag
from signoff.review.diff import DiffHunk
from signoff.review.finding import Finding

MOST_WORDS = 400
"""Words of a line up to which changed words are marked; beyond that, the line is."""
_WORDS = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")
_CLASSES = {"+": "add", "-": "del", "\\": "soft"}


def hunk_html(hunk: DiffHunk, findings: Mapping[str, Finding]) -> Markup:
    """Returns one hunk; the findings that it answers are links to them."""
    answers = [finding_link(findings[i]) if i in findings else i for i in hunk.findings]
    why: Content = ["answers ", join(_separated(answers))] if answers else "answers no finding"
    header = tag("header", tag("span", hunk.header, class_="mono"), tag("span", why))
    return tag("div", header, tag("pre", _lines(hunk.lines)), class_="hunk")


def finding_link(finding: Finding) -> Markup:
    """Returns a link to a finding on the same page."""
    return tag("a", f"{finding.constraint} {finding.id[:6]}", href=f"#f-{finding.id}")


def _separated(items: Sequence[Content]) -> Iterator[Content]:
    for number, item in enumerate(items):
        yield from ([", ", item] if number else [item])


def _lines(lines: Sequence[str]) -> Iterator[Markup]:
    position = 0
    while position < len(lines):
        removed = _run(lines, position, "-")
        added = _run(lines, position + len(removed), "+")
        if len(removed) == len(added) > 0:
            pairs = [_words(old[1:], new[1:]) for old, new in zip(removed, added, strict=True)]
            yield from (tag("span", "-", old, class_="del") for old, _ in pairs)
            yield from (tag("span", "+", new, class_="add") for _, new in pairs)
            position += len(removed) + len(added)
        else:
            line = lines[position]
            yield tag("span", line or " ", class_=_CLASSES.get(line[:1]))
            position += 1


def _run(lines: Sequence[str], start: int, sign: str) -> list[str]:
    end = start
    while end < len(lines) and lines[end].startswith(sign):
        end += 1
    return list(lines[start:end])


def _words(old: str, new: str) -> tuple[Content, Content]:
    """Returns two versions of a line with the words marked that differ."""
    left, right = _WORDS.findall(old), _WORDS.findall(new)
    if max(len(left), len(right)) > MOST_WORDS:
        return old, new
    from rapidfuzz.distance import Indel

    before: list[Content] = []
    after: list[Content] = []
    for block in Indel.opcodes(left, right):
        gone = "".join(left[block.src_start : block.src_end])
        come = "".join(right[block.dest_start : block.dest_end])
        same = block.tag == "equal"
        before.append(gone if same or not gone else tag("del", gone))
        after.append(come if same or not come else tag("ins", come))
    return before, after
