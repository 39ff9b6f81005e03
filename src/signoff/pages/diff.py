"""Diffs as HTML: hunks with the findings they answer, and the words that changed in a line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import zip_longest

from signoff.pages.html import Content, Markup, cut, join, run_path, tag
from signoff.review.diff import DiffHunk
from signoff.review.finding import Finding
from signoff.review.history import ReviewHistory, Version

MOST_WORDS = 400
"""Words of a line up to which changed words are marked; beyond that, the line is."""
_WORDS = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_WEIGHTS = {"+": 1, "-": 1, "\\": 0}
"""How many lines of both versions a line of a hunk stands for; one without a sign is in both."""
_CLASSES = {"+": "add", "-": "del", "\\": "soft", "@": "at"}


def hunk_html(hunk: DiffHunk, findings: Mapping[str, Finding], page: str = "") -> Markup:
    """Returns one hunk; the findings that it answers are links to them.

    `page` is the address of the page that has the findings, if it is another one.
    """
    header = _header(hunk, findings, page)
    return tag("div", header, tag("pre", _lines([*map(cut, hunk.lines)])), class_="hunk")


def split_html(hunk: DiffHunk, findings: Mapping[str, Finding], page: str = "") -> Markup:
    """Returns the same with the old lines on the left and the new ones on the right."""
    rows = [tag("tr", _cell(*old), _cell(*new)) for old, new in _rows([*map(cut, hunk.lines)])]
    label = f"Changes {hunk.header}: old on the left, new on the right"
    lines = tag("table", tag("tbody", join(rows)), class_="split")
    box = tag("div", lines, class_="scroll", tabindex=0, role="group", aria_label=label)
    return tag("div", _header(hunk, findings, page), box, class_="hunk")


def _header(hunk: DiffHunk, findings: Mapping[str, Finding], page: str) -> Markup:
    answers = [finding_link(findings[i], page) if i in findings else i for i in hunk.findings]
    why: Content = ["answers ", join(_separated(answers))] if answers else "answers no finding"
    return tag("header", tag("span", hunk.header, class_="mono"), tag("span", why))


def unified_html(diff: str) -> Markup:
    """Returns a unified diff of several files with its lines colored; every line is shown."""
    return join(_file(name, lines) for name, lines in _files(diff))


def changed_lines(lines: Iterable[str]) -> Counter[str]:
    """Returns the lines that a diff adds and removes, each with its sign, and how often."""
    return Counter(line for line in lines if line[:1] in ("+", "-"))


def diff_lines(diff: str) -> list[str]:
    """Returns the lines of a unified diff without the headers of its files."""
    return [line for _, lines in _files(diff) for line in lines]


def _files(diff: str) -> list[tuple[str, list[str]]]:
    files: list[tuple[str, list[str]]] = []
    inside = 0
    for line in diff.split("\n"):
        # Inside of a hunk, a line that looks like the header of a file is a changed line.
        if not inside and line.startswith("+++ "):
            files[-1:] = [(line[4:].split("\t")[0].removeprefix("b/"), [])]
        elif not inside and line.startswith("--- "):
            files.append((line[4:], []))
        elif files:
            inside = _size(line) if not inside else inside - _WEIGHTS.get(line[:1], 2)
            files[-1][1].append(line)
    return files


def _size(header: str) -> int:
    """Returns how many lines of both versions a hunk has; 0 for any other line."""
    match = _HUNK.match(header)
    return sum(int(count or 1) for count in match.groups()) if match else 0


def _file(name: str, lines: Sequence[str]) -> Markup:
    header = tag("header", tag("span", name, class_="mono"))
    return tag("div", header, tag("pre", _lines(lines), tabindex=0), class_="hunk")


def finding_link(finding: Finding, page: str = "") -> Markup:
    """Returns a link to a finding on the same page, or on another."""
    return tag("a", f"{finding.constraint} {finding.id[:6]}", href=f"{page}#f-{finding.id}")


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


_Side = tuple[str, Content]
"""A line of one version: how it looks (`add`, `del`, `same` or `none`), and its words."""
_NONE: _Side = ("none", "")


def _rows(lines: Sequence[str]) -> Iterator[tuple[_Side, _Side]]:
    """Yields the lines of a hunk in pairs, old and new."""
    position = 0
    while position < len(lines):
        removed = _run(lines, position, "-")
        added = _run(lines, position + len(removed), "+")
        position += len(removed) + len(added)
        if removed or added:
            for old, new in zip_longest(removed, added):
                yield _pair(old, new)
            continue
        line = lines[position]
        same = ("soft" if line.startswith("\\") else "same", line[1:])
        yield same, same
        position += 1


def _pair(old: str | None, new: str | None) -> tuple[_Side, _Side]:
    if old is None or new is None:
        left = _NONE if old is None else ("del", old[1:])
        return left, _NONE if new is None else ("add", new[1:])
    before, after = _words(old[1:], new[1:])
    return ("del", before), ("add", after)


def _cell(style: str, words: Content) -> Markup:
    sign = {"add": "+", "del": "-"}.get(style, " ")
    inside = (tag("span", sign, class_="sign"), words) if style != "none" else None
    return tag("td", inside, class_=style)


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


MOST_HUNKS = 200
"""Hunks that are shown at once; of a change with more, the first ones."""


class DiffView(StrEnum):
    """How changes are laid out."""

    INLINE = "inline"
    SPLIT = "split"


def changes_html(
    history: ReviewHistory, run: str, first: int | None, last: int | None, view: DiffView
) -> Iterator[Markup]:
    """Yields the choice of versions, and the hunks between two of them.

    Without numbers of versions, these are the latest one and the one before.
    """
    if len(history.versions) < 2:
        yield tag("p", "There is only one version so far.", class_="soft")
        return
    after = history.version(last or 0) or history.versions[-1]
    before = history.version(first or 0) or history.version(after.number - 1) or after
    if before.number > after.number:
        # Read backward, no hunk would answer anything.
        before, after = after, before
    yield _chooser(history.versions, run, before, after, view)
    yield from changed_hunks(history, before, after, view)


def changed_hunks(
    history: ReviewHistory,
    before: Version,
    after: Version,
    view: DiffView = DiffView.INLINE,
    page: str = "",
) -> Iterator[Markup]:
    """Yields the hunks between two versions with the findings that they answer.

    `page` is the address of the page that has the findings, if it is another one.
    """
    files = history.changes(before, after)
    found = [(path, hunk) for path, hunks in files.items() for hunk in hunks]
    if not found:
        yield tag("p", "These versions are equal.", class_="soft")
    by_id = {each.id: each for each in history.findings}
    name = ""
    for path, hunk in found[:MOST_HUNKS]:
        if path and history.name_of(path) != name:
            name = history.name_of(path)
            yield tag("h3", name, class_="mono")
        yield (split_html if view is DiffView.SPLIT else hunk_html)(hunk, by_id, page)
    if len(found) > MOST_HUNKS:
        yield tag("p", f"{len(found) - MOST_HUNKS} more changes are not shown.", class_="soft")


def _chooser(
    versions: Sequence[Version], run: str, before: Version, after: Version, chosen: DiffView
) -> Markup:
    views = [
        tag("option", words, value=view.value, selected=view is chosen)
        for view, words in ((DiffView.INLINE, "inline"), (DiffView.SPLIT, "side by side"))
    ]
    fields = [
        _versions("from", "From", versions, before),
        _versions("to", "to", versions, after),
        tag("label", tag("span", "View"), tag("select", views, name="view")),
        tag("button", "Compare", type="submit"),
    ]
    address = f"{run_path(run)}#changes"
    return tag("form", fields, method="get", action=address, class_="filter", id="compare",
               aria_label="Choose versions to compare", hx_morph_skip=True)  # fmt: skip


def _versions(name: str, label: str, versions: Sequence[Version], chosen: Version | None) -> Markup:
    options = [
        tag("option", _title(each), value=each.number, selected=each is chosen) for each in versions
    ]
    return tag("label", tag("span", label), tag("select", options, name=name))


def _title(version: Version) -> str:
    by = f" by {version.agent}" if version.agent else ""
    return f"version {version.number} (round {version.round}, {version.step}{by})"
