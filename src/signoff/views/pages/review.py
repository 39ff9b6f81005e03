"""Findings as HTML: what was reported, the evidence in its text, and what became of it.

Also what helps to decide about a review: its open findings, and what the last round changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from signoff.core.amounts import count
from signoff.core.words import FindingStatus
from signoff.review.pure.artifact import UNNAMED, Location
from signoff.review.pure.diff import DiffHunk
from signoff.review.pure.finding import LISTED, MOST_EQUAL, Finding, group_equal
from signoff.review.pure.history import ReviewHistory, Version, describe_status
from signoff.views.pages.html import (
    LONGEST_LINE,
    Content,
    Markup,
    cut,
    folded,
    join,
    run_path,
    tag,
)

MOST_LINES = 12
"""Lines of a text that are shown around a quote."""
MOST_TEXT = 400_000
"""Characters of an artifact that a page shows as a whole."""
MOST_FINDINGS = 20
"""Entries of open findings that are shown next to a decision, what blocks first."""
MOST_HUNKS = 200
"""Hunks that are shown at once; of a change with more, the first ones."""
MOST_WORDS = 400
"""Words of a line up to which changed words are marked; beyond that, the line is."""
_WORDS = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_WEIGHTS = {"+": 1, "-": 1, "\\": 0}
"""How many lines of both versions a line of a hunk stands for; one without a sign is in both."""
_CLASSES = {"+": "add", "-": "del", "\\": "soft", "@": "at"}


def finding_groups(
    history: ReviewHistory, run: str = "", most: int | None = None
) -> Iterator[Markup]:
    """Yields the findings by status, what needs a look first.

    `run` is the run whose page this is; of a status with more than `most`, the rest is a link to
    all of them. The report, which is printed and sent on, has no such page and shows all in full.
    """
    if not history.findings:
        yield tag("p", "No critic reported anything.", class_="soft")
        return
    listed = history.listed(history.findings)
    current = history.versions[-1] if run else None
    for status in LISTED:
        found = [each for each in listed if each.status is status]
        if not found:
            continue
        title, groups = status.words.capitalize(), group_equal(found)
        is_open = status is FindingStatus.OPEN
        cards = [finding_html(history, group, current) for group in groups[:most]]
        more = None
        if most is not None and len(groups) > most:
            words = f"All {len(found):,} {title.lower()} findings"
            address = f"{run_path(run, 'findings')}#group-{status.value}"
            more = tag("p", tag("a", words, href=address))
        # What is settled is folded: hundreds of cards would hide what is still open.
        unfolded = is_open or (not run and (len(groups) <= 20 or status is FindingStatus.DISMISSED))
        place = f"group-{status.value}"
        yield folded(title, f"{len(found):,}", cards, more, open=unfolded, id=place)


def finding_html(
    history: ReviewHistory, group: Sequence[Finding], current: Version | None = None
) -> Markup:
    """Returns a finding, or several equal ones, with the evidence and what became of it.

    With `current`, its place in that version is a link to the passage on the same page.
    """
    finding = group[0]
    rule = f"{finding.constraint} / {finding.rule}" if finding.rule else finding.constraint
    head = [
        tag("span", finding.severity.value, class_=f"badge {finding.severity.key}"),
        tag("b", rule),
        _place(history, finding, current),
        tag("span", finding.id, class_="mono"),
        tag("span", "unverified: its quote was not found") if finding.unverified else None,
    ]
    parts: list[Content] = [
        tag("div", head, class_="head"),
        tag("p", cut(finding.finding), class_="what"),
        _evidence(history, finding),
    ]
    if finding.suggested_fix:
        parts.append(_note("Suggested fix: ", finding.suggested_fix))
    parts += _decision(history, finding)
    parts.append(_path(finding))
    parts.append(_equal(history, group, current))
    style = f"card finding s-{finding.severity.key}"
    return tag("article", parts, id=f"f-{finding.id}", class_=style)


def _place(history: ReviewHistory, finding: Finding, current: Version | None) -> Markup:
    found = history.location(finding, current) if current is not None else None
    if current is None or (found is None and finding.omission):
        return tag("span", history.place(finding), class_="mono")
    if found is None:
        return tag("span", history.place(finding), " (changed since)", class_="mono")
    name = f"{history.name_of(finding.path)}:{found.line}"
    return tag("a", name, href=f"#m-{finding.id}", class_="mono")


def _equal(
    history: ReviewHistory, group: Sequence[Finding], current: Version | None
) -> Markup | None:
    """Returns where the others of several equal findings are; links to each of them work."""
    if len(group) < 2:
        return None
    others = [
        tag("li", _place(history, each, current), " ", tag("span", each.id, class_="mono"),
            id=f"f-{each.id}")
        for each in group[1:]
    ]  # fmt: skip
    words = f"{len(group):,} times; the others"
    return tag("details", tag("summary", words), tag("ul", others), open=len(others) <= MOST_EQUAL)


def marked_text(
    history: ReviewHistory, version: Version, findings: Sequence[Finding]
) -> Iterator[Markup]:
    """Yields each file of a version with the quotes of findings highlighted, as links to them."""
    for path, text in version.files.items():
        quotes = [(each, history.location(each, version)) for each in findings if each.path == path]
        spans = [(*_span(text, found), each) for each, found in quotes if found is not None]
        if path:
            yield tag("h3", history.name_of(path), class_="mono")
        yield tag("pre", _highlighted(text[:MOST_TEXT], spans))
        rest = len(text) - MOST_TEXT
        if rest > 0:
            yield tag("p", f"The rest of the text ({rest:,} characters) is not shown.")


def _evidence(history: ReviewHistory, finding: Finding) -> Markup | None:
    if finding.omission:
        return tag("p", "Evidence: something is missing.", class_="small soft")
    version, found = history.reviewed_in(finding.last), history.location(finding)
    if version is None or found is None:
        return tag("pre", tag("mark", cut(finding.quote)))
    text = version.files[found.path]
    start, end = _span(text, found)
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    lines = text[first : last if last >= 0 else len(text)]
    # A quote from a minified file would bring its line of a megabyte with it.
    if lines.count("\n") >= MOST_LINES or len(lines) > LONGEST_LINE:
        return tag("pre", tag("mark", cut(finding.quote)))
    marked = tag("mark", text[start:end])
    return tag("pre", text[first:start], marked, text[end : first + len(lines)])


def _decision(history: ReviewHistory, finding: Finding) -> Iterator[Markup]:
    judgment = history.dismissals.get(finding.id)
    if finding.status is FindingStatus.DISMISSED:
        by = f" by {judgment.by}" if judgment is not None else ""
        yield _note(f"Dismissed{by}: ", finding.reason or "no reason given")
    elif finding.status is FindingStatus.IGNORED and finding.reason:
        yield _note("Ignored: ", finding.reason)
    if finding.decision:
        yield _note("Decided by a human: ", finding.decision)


def _note(title: str, text: str) -> Markup:
    return tag("p", tag("b", title), cut(text), class_="small")


def _path(finding: Finding) -> Markup:
    steps = [tag("li", f"round {number}: {label.words}") for number, label in finding.history[:-1]]
    reporters = f" (reported by {', '.join(finding.flagged_by)})" if finding.flagged_by else ""
    return tag(
        "ul",
        steps,
        tag("li", f"{describe_status(finding)}{reporters}", class_="end"),
        class_="path",
    )


def _span(text: str, found: Location) -> tuple[int, int]:
    """Returns the range of a passage; whole lines if its columns are not known."""
    starts = _line_start(text, found.line), _line_start(text, found.end_line)
    if found.column is not None and found.end_column is not None:
        return starts[0] + found.column - 1, starts[1] + found.end_column - 1
    end = text.find("\n", starts[1])
    return starts[0], end if end >= 0 else len(text)


def _line_start(text: str, line: int) -> int:
    position = 0
    for _ in range(line - 1):
        position = text.find("\n", position) + 1
    return position


def _highlighted(text: str, spans: Sequence[tuple[int, int, Finding]]) -> Iterator[Content]:
    """Yields a text with its spans marked; where two overlap, the first one wins."""
    position = 0
    for start, end, finding in sorted(spans, key=lambda span: span[:2]):
        # A link inside another is no HTML, and a text that is cut ends before its last quotes.
        if start < position or end > len(text):
            continue
        yield text[position:start]
        title = f"{finding.severity.value} {finding.constraint}: {finding.finding}"
        link = tag("a", text[start:end], href=f"#f-{finding.id}", title=title[:300])
        yield tag("mark", link, id=f"m-{finding.id}")
        position = end
    yield text[position:]


def review_context(run: str, history: ReviewHistory) -> Markup:
    """Returns the open findings and the latest changes of a review."""
    return join(
        [_open_findings(run, history), _last_changes(run, history), _closed_findings(run, history)]
    )


def shown_better(request: Mapping[str, Any], history: ReviewHistory) -> dict[str, Markup]:
    """Returns the text of a review with its evidence marked.

    Only where a request shows exactly that: the answer is bound to what the request shows.
    """
    texts = {name: text for name, text in request["shown"].items() if isinstance(text, str)}
    found = {name: _marked(history, text) for name, text in texts.items()}
    return {name: markup for name, markup in found.items() if markup}


def _marked(history: ReviewHistory, text: str) -> Markup | None:
    current = history.versions[-1] if history.versions else None
    if current is None or current.files != {UNNAMED: text} or len(text) > MOST_TEXT:
        return None
    marked = marked_text(history, current, history.open_findings())
    return tag("div", marked, class_="shown", tabindex=0)


def _open_findings(run: str, history: ReviewHistory) -> Markup | None:
    found = history.open_findings()
    if not found or not history.versions:
        return None
    current = history.versions[-1]
    parts: list[Content] = [tag("h2", f"Open findings ({len(found):,})")]
    groups = group_equal(found)
    parts += [finding_html(history, group, current) for group in groups[:MOST_FINDINGS]]
    if len(groups) > MOST_FINDINGS:
        link = tag("a", f"All {len(found):,} open findings", href=run_path(run, "findings"))
        parts.append(tag("p", link))
    return tag("section", parts)


def _last_changes(run: str, history: ReviewHistory) -> Markup | None:
    if len(history.versions) < 2:
        return None
    before, after = history.versions[-2:]
    title = tag("h2", f"What round {after.round} changed")
    return tag(
        "section", title, changed_hunks(history, before, after, page=run_path(run, "findings"))
    )


def _closed_findings(run: str, history: ReviewHistory) -> Markup | None:
    """Returns how many findings are no longer open, and where they are."""
    counts = {
        status: sum(each.status is status for each in history.findings)
        for status in FindingStatus
        if status is not FindingStatus.OPEN
    }
    listed = ", ".join(f"{number} {status.words}" for status, number in counts.items() if number)
    if not listed:
        return None
    link = tag("a", f"{listed} of {count(len(history.findings), 'finding')}",
               href=run_path(run, "findings"))  # fmt: skip
    compare = tag("a", "compare versions", href=f"{run_path(run)}#changes")
    return tag("p", "Also: ", link, "; ", compare, ".", class_="small")


def hunk_html(hunk: DiffHunk, findings: Mapping[str, Finding], page: str = "") -> Markup:
    """Returns one hunk; the findings that it answers are links to them.

    `page` is the address of the page that has the findings, if it is another one.
    """
    answers = [finding_link(findings[i], page) if i in findings else i for i in hunk.findings]
    why: Content = ["answers ", join(_separated(answers))] if answers else "answers no finding"
    header = tag("header", tag("span", hunk.header, class_="mono"), tag("span", why))
    return tag("div", header, tag("pre", _lines([*map(cut, hunk.lines)])), class_="hunk")


def unified_html(diff: str) -> Markup:
    """Returns a unified diff of several files with its lines colored; every line is shown."""
    return join(_file(name, lines) for name, lines in _files(diff))


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
        # As many lines as before: each most likely replaces the one at its place.
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
    # Comparing them takes the square of their number; a minified file would take seconds.
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


def changes_html(
    history: ReviewHistory, run: str, first: int | None, last: int | None
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
    yield _chooser(history.versions, run, before, after)
    yield from changed_hunks(history, before, after)


def changed_hunks(
    history: ReviewHistory, before: Version, after: Version, page: str = ""
) -> Iterator[Markup]:
    """Yields the hunks between two versions with the findings that they answer.

    `page` is the address of the page that has the findings, if it is another one.
    """
    files = history.changes(before, after)
    found = [(path, hunk) for path, hunks in files.items() for hunk in hunks]
    if not found:
        yield tag("p", "These versions are equal.", class_="soft")
    # Long reviews have thousands of findings, and each hunk names some of them.
    by_id = {each.id: each for each in history.findings}
    name = ""
    for path, hunk in found[:MOST_HUNKS]:
        if path and history.name_of(path) != name:
            name = history.name_of(path)
            yield tag("h3", name, class_="mono")
        yield hunk_html(hunk, by_id, page)
    if len(found) > MOST_HUNKS:
        yield tag("p", f"{len(found) - MOST_HUNKS} more changes are not shown.", class_="soft")


def _chooser(versions: Sequence[Version], run: str, before: Version, after: Version) -> Markup:
    fields = [
        _versions("from", "From", versions, before),
        _versions("to", "to", versions, after),
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
