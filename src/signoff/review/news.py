"""What one event adds to a review, for views that show a review while it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from signoff.core.severity import Severity
from signoff.review.diff import diff_files
from signoff.review.finding import group_equal
from signoff.review.history import Judgment, Version
from signoff.runtime.amounts import count

LONGEST_NEWS = 200
"""Characters of a finding in a line."""


@dataclass(frozen=True)
class IssuesReported:
    """A critic has read the artifact against one constraint."""

    constraint: str
    reviewer: str
    issues: tuple[Mapping[str, Any], ...]
    """What it reports, as its critique has it; empty if it found nothing."""
    places: tuple[str, ...] = ()
    """The file and the line of each issue."""
    usable: bool = True
    """Whether the answer was a review; if not, nothing that it says counts."""
    decided_by: str = ""
    """The human who decided, because the critic gave no usable review."""
    answered_by: str = ""
    """Who answered in the reviewer's place: the agent that `auto` chose, or a human."""
    paths: tuple[str, ...] = ()
    """The files that were read; empty if the artifact is a single text."""


@dataclass(frozen=True)
class ArtifactChanged:
    """A step has written another version."""

    step: str
    round: int
    before: Version
    after: Version


@dataclass(frozen=True)
class Judged:
    """A judge has decided."""

    judgment: Judgment


ReviewNews = IssuesReported | ArtifactChanged | Judged


def describe_news(news: ReviewNews) -> Iterator[tuple[str, Severity | None]]:
    """Yields what has just happened in a review in lines, each finding with its severity."""
    match news:
        case IssuesReported(usable=False):
            yield f"{_about(news)}: no usable review by {news.answered_by or news.reviewer}", None
        case IssuesReported(issues=()):
            yield f"{_about(news)}: passed by {_decider(news)}", None
        case IssuesReported():
            for (issue, place), *equal in group_equal(_placed(news), _entry):
                severity = Severity.read(issue.get("severity"))
                text = _one_line(str(issue.get("finding", "")))
                rule = str(issue.get("rule_id") or news.constraint)
                about = news.constraint if rule == news.constraint else f"{news.constraint}/{rule}"
                times = f" ({len(equal) + 1:,} times)" if equal else ""
                aside = issue.get("set_aside") or issue.get("dismissed")
                why = f" (does not count: {aside})" if aside else ""
                yield f"{severity} {about} {place}: {text}{times}{why}", None if aside else severity
        case ArtifactChanged():
            yield _change(news), None
        case Judged(judgment=judgment):
            yield f"{judgment.by}: {judgment.words}", None


_SHOWN = ("path", "rule_id", "severity", "finding", "evidence", "set_aside", "dismissed")
_PlacedIssue = tuple[Mapping[str, Any], str]


def _placed(news: IssuesReported) -> Iterator[_PlacedIssue]:
    return zip(news.issues, news.places, strict=True)


def _entry(reported: _PlacedIssue) -> tuple[object, ...]:
    """Returns what a line says about an issue besides its place."""
    issue = reported[0]
    return tuple(issue.get(name) for name in _SHOWN)


def _decider(news: IssuesReported) -> str:
    reader = news.answered_by or news.reviewer
    if not news.decided_by:
        return reader
    return f"{news.decided_by}; {reader} gave no usable review"


def _about(news: IssuesReported) -> str:
    """Returns the constraint and, in a review of files, which of them were read."""
    more = f" and {len(news.paths) - 1} more" if len(news.paths) > 1 else ""
    return f"{news.constraint} {news.paths[0]}{more}" if news.paths else news.constraint


def _change(news: ArtifactChanged) -> str:
    changes = diff_files(news.before.files, news.after.files, labels=news.after.labels)
    hunks = [hunk for found in changes.values() for hunk in found]
    added, removed = sum(h.added for h in hunks), sum(h.removed for h in hunks)
    answered = {finding for hunk in hunks for finding in hunk.findings}
    how = news.after.agent or "exact edits"
    answers = f", answers {count(len(answered), 'finding')}" if answered else ""
    return f"changed by {how}: +{added} -{removed}{answers}"


def _one_line(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST_NEWS else f"{flat[: LONGEST_NEWS - 1]}…"
