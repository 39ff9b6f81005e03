"""Findings as HTML: what was reported, the evidence in its text, and what became of it.

Also what helps to decide about a review: its open findings, and what the last round changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from signoff.core.words import FindingStatus
from signoff.pages.diff import MOST_HUNKS, changed_hunks, changed_lines, diff_lines
from signoff.pages.html import (
    LONGEST_LINE,
    Content,
    Markup,
    cut,
    join,
    one_line,
    run_path,
    tag,
)
from signoff.review.artifact import UNNAMED, Location
from signoff.review.finding import LISTED, MOST_EQUAL, Finding, group_equal
from signoff.review.history import ReviewHistory, Version, describe_status
from signoff.runtime.amounts import count

MOST_LINES = 12
"""Lines of a text that are shown around a quote."""
LINE, QUOTE = 140, 2_000
"""Characters of a finding on one line, and of the quote below it."""
MOST_TEXT = 400_000
"""Characters of an artifact that a page shows as a whole."""
MOST_FINDINGS = 20
"""Entries of open findings that are shown next to a decision, what blocks first."""


def by_status(history: ReviewHistory) -> Iterator[tuple[FindingStatus, list[Finding]]]:
    """Yields the findings of each status in the order of a list, what needs a look first."""
    listed = history.listed(history.findings)
    for status in LISTED:
        if found := [each for each in listed if each.status is status]:
            yield status, found


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
        parts.append(
            tag("p", tag("b", "Suggested fix: "), cut(finding.suggested_fix), class_="small")
        )
    parts += _decision(history, finding)
    parts.append(_path(finding))
    parts.append(_equal(history, group, current))
    return tag(
        "article", parts, id=f"f-{finding.id}", class_=f"card finding s-{finding.severity.key}"
    )


def finding_line(history: ReviewHistory, group: Sequence[Finding]) -> Markup:
    """Returns a finding, or several equal ones, on a line that unfolds to what became of it."""
    finding = group[0]
    times = f" ({len(group):,} times)" if len(group) > 1 else ""
    summary = tag(
        "summary",
        tag("span", finding.severity.value, class_=f"badge {finding.severity.key}"),
        " ",
        tag("b", finding.constraint),
        f" {one_line(finding.finding, LINE)}{times}",
    )
    parts = [
        tag("p", cut(finding.finding), class_="what"),
        None if finding.omission else tag("pre", finding.quote[:QUOTE]),
        *_decision(history, finding),
        _path(finding),
        _equal(history, group, None),
    ]
    return tag("details", summary, parts, id=f"f-{finding.id}", class_="line")


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
        shown = text[:MOST_TEXT]
        yield tag("pre", _highlighted(shown, spans))
        if len(shown) < len(text):
            yield tag(
                "p", f"The rest of the text ({len(text) - len(shown):,} characters) is not shown."
            )


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
    if lines.count("\n") >= MOST_LINES or len(lines) > LONGEST_LINE:
        return tag("pre", tag("mark", cut(finding.quote)))
    return tag(
        "pre", text[first:start], tag("mark", text[start:end]), text[end : first + len(lines)]
    )


def _decision(history: ReviewHistory, finding: Finding) -> Iterator[Markup]:
    judgment = history.dismissals.get(finding.id)
    if finding.status is FindingStatus.DISMISSED:
        by = f" by {judgment.by}" if judgment is not None else ""
        yield tag(
            "p",
            tag("b", f"Dismissed{by}: "),
            cut(finding.reason) or "no reason given",
            class_="small",
        )
    elif finding.status is FindingStatus.IGNORED and finding.reason:
        yield tag("p", tag("b", "Ignored: "), cut(finding.reason), class_="small")
    if finding.decision:
        yield tag("p", tag("b", "Decided by a human: "), cut(finding.decision), class_="small")


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
    """Returns the text of a review with its evidence marked, and its diff with its findings.

    Only where a request shows exactly that: the answer is bound to what the request shows.
    """
    if not history.versions:
        return {}
    texts = [(name, text) for name, text in request["shown"].items() if isinstance(text, str)]
    found = {
        name: _marked(history, text) or _answered_hunks(request["run"], history, text)
        for name, text in texts
    }
    return {name: markup for name, markup in found.items() if markup}


def _marked(history: ReviewHistory, text: str) -> Markup | None:
    current = history.versions[-1]
    if current.files != {UNNAMED: text} or len(text) > MOST_TEXT:
        return None
    marked = marked_text(history, current, history.open_findings())
    return tag("div", marked, class_="shown", tabindex=0)


def _answered_hunks(run: str, history: ReviewHistory, text: str) -> Markup | None:
    if not text.startswith("--- ") or len(history.versions) < 2:
        return None
    first, last = history.versions[0], history.versions[-1]
    hunks = [hunk for found in history.changes(first, last).values() for hunk in found]
    own = changed_lines(line for hunk in hunks for line in hunk.lines)
    if own != changed_lines(diff_lines(text)) or len(hunks) > MOST_HUNKS:
        return None
    return join(changed_hunks(history, first, last, page=run_path(run, "findings")))


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
    if len(history.versions) < 3:
        # With two versions, it is what the request itself shows, or the whole review.
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
