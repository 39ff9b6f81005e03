"""What helps to decide about a review: its open findings, and what the last round changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.core.words import FindingStatus
from signoff.pages.changes import MOST_HUNKS, changed_hunks
from signoff.pages.diff import changed_lines, diff_lines
from signoff.pages.findings import MOST_TEXT, finding_html, marked_text
from signoff.pages.html import Content, Markup, join, tag
from signoff.pages.parts import run_path
from signoff.review.artifact import UNNAMED
from signoff.review.finding import group_equal
from signoff.review.history import ReviewHistory
from signoff.runtime.amounts import count

MOST_FINDINGS = 20
"""Entries of open findings that are shown next to a decision, what blocks first."""


def review_context(run: str, history: ReviewHistory) -> Markup:
    """Returns the open findings and the latest changes of a review."""
    return join([_findings(run, history), _changes(run, history), _others(run, history)])


def shown_better(request: Mapping[str, Any], history: ReviewHistory) -> dict[str, Markup]:
    """Returns the text of a review with its evidence marked, and its diff with its findings.

    Only where a request shows exactly that: the answer is bound to what the request shows.
    """
    if not history.versions:
        return {}
    texts = [(name, text) for name, text in request["shown"].items() if isinstance(text, str)]
    found = {
        name: _text(history, text) or _diff(request["run"], history, text) for name, text in texts
    }
    return {name: markup for name, markup in found.items() if markup}


def _text(history: ReviewHistory, text: str) -> Markup | None:
    current = history.versions[-1]
    if current.files != {UNNAMED: text} or len(text) > MOST_TEXT:
        return None
    marked = marked_text(history, current, history.open_findings())
    return tag("div", marked, class_="shown", tabindex=0)


def _diff(run: str, history: ReviewHistory, text: str) -> Markup | None:
    if not text.startswith("--- ") or len(history.versions) < 2:
        return None
    first, last = history.versions[0], history.versions[-1]
    hunks = [hunk for found in history.changes(first, last).values() for hunk in found]
    own = changed_lines(line for hunk in hunks for line in hunk.lines)
    if own != changed_lines(diff_lines(text)) or len(hunks) > MOST_HUNKS:
        return None
    return join(changed_hunks(history, first, last, page=run_path(run, "findings")))


def _findings(run: str, history: ReviewHistory) -> Markup | None:
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


def _changes(run: str, history: ReviewHistory) -> Markup | None:
    if len(history.versions) < 3:
        # With two versions, it is what the request itself shows, or the whole review.
        return None
    before, after = history.versions[-2:]
    title = tag("h2", f"What round {after.round} changed")
    return tag(
        "section", title, changed_hunks(history, before, after, page=run_path(run, "findings"))
    )


def _others(run: str, history: ReviewHistory) -> Markup | None:
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
