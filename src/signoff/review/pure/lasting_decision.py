"""Decisions about findings that hold in later runs, while the passage they are about is unchanged.

A decision becomes a dismissed finding at the start of a run. From there on everything is as within
a run: critics see it, and reporting it again changes nothing. Comments in a file can
decide as well: `signoff: ignore RULE reason`, on the line of the finding or the one before.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, ClassVar

from signoff.core.severity import DEFAULT_SEVERITY, Severity
from signoff.core.words import FindingStatus, Label
from signoff.documents.globs import matches
from signoff.review.pure.artifact import ArtifactVersion, locate, place, with_occurrence
from signoff.review.pure.critique import CritiqueIssue, quotes_nothing
from signoff.review.pure.finding import Finding
from signoff.review.pure.record import Record

BASELINE = "baseline"
"""The reason of a decision that accepts what exists."""
_SAME_AS_FINDING = (
    *("constraint", "rule", "severity", "path", "quote"),
    *("line", "before", "after", "occurrence", "occurrences", "others"),
)
"""What a decision and its finding say in the same words: the rule, and which passage is meant."""
_COMMENT = re.compile(r"signoff:\s*ignore\s+([\w./-]+)[ \t]*(.*)")
_COMMENT_ENDS = re.compile(r"\s*(?:-->|\*/|#}|%>|\)\)?)?\s*$")


@dataclass(frozen=True)
class LastingDecision(Record):
    """A human's decision not to fix a finding."""

    finding: str
    """The finding's id."""
    constraint: str
    why: str
    rule: str = ""
    severity: Severity = DEFAULT_SEVERITY
    """A worse report of the same thing counts again."""
    path: str = ""
    quote: str = ""
    about: str = ""
    """What the finding says."""
    version: str = ""
    """The digest of the file; it decides where something is missing and there is no quote."""
    line: int = 0
    """The line of the passage when it was decided about."""
    before: str = ""
    """The nearest line before the passage that has other words."""
    after: str = ""
    occurrence: int = 0
    """Which of the equal passages of its file it is about, from 1."""
    occurrences: int = 0
    """How many equal passages the file had."""
    others: tuple[str, ...] = ()
    """Digests of the lines around equal passages that it is not about."""
    all_like: bool = False
    """Whether it covers its rule in all files, or in those of `files`; later ones included."""
    files: str = ""
    """A pattern of paths as in a `.gitignore`."""
    by: str = ""
    on: str = ""
    until: str = ""
    """The last day on which it holds, as 2026-12-31."""

    omit_empty: ClassVar = frozenset(
        {
            *("rule", "path", "quote", "about", "version", "by", "on", "until"),
            *("line", "before", "after", "occurrence", "occurrences", "others"),
            *("all_like", "files"),
        }
    )

    @classmethod
    def about_finding(cls, finding: Finding, why: str, **record: Any) -> LastingDecision:
        """Returns the decision to dismiss a finding; `record` says who, when and until when."""
        return cls(
            finding=finding.id,
            why=why,
            about=finding.finding,
            version=finding.artifact if finding.omission else "",
            **{name: getattr(finding, name) for name in _SAME_AS_FINDING},
            **record,
        )

    @classmethod
    def about_rule(cls, finding: Finding, why: str, files: str, **record: Any) -> LastingDecision:
        """Returns the decision to dismiss what a finding's rule reports in some files."""
        about = (finding.id, finding.constraint, why, finding.rule, finding.severity)
        return cls(*about, all_like=True, files=files, **record)

    def covers(self, constraint: str, rule: str, path: str) -> bool:
        """Whether it is about a rule and these findings are in one of its files."""
        same = self.all_like and (constraint, rule) == (self.constraint, self.rule)
        return same and (not self.files or matches([self.files], path))

    def has_ended(self, today: date) -> bool:
        """Whether its last day has passed."""
        return bool(self.until) and date.fromisoformat(self.until) < today

    def may_hold(self, version: ArtifactVersion, path: str, today: date) -> bool:
        """Whether it can be about this version of a file: its day has not passed.

        What is missing may have been added if the file has changed.
        """
        if self.all_like or path not in version.files or self.has_ended(today):
            return False
        # Without a quote there is no passage to look for, so only an unchanged file is certainly
        # the one that was decided about.
        if quotes_nothing(self.quote):
            return bool(self.version) and version.digest(path) == self.version
        return True

    def as_finding(self, version: ArtifactVersion, path: str) -> Finding:
        """Returns the dismissed finding that a run starts with."""
        same = {name: getattr(self, name) for name in _SAME_AS_FINDING}
        return Finding(
            id=self.finding,
            location="",
            finding=self.about,
            status=FindingStatus.DISMISSED,
            history=((0, Label.DISMISSED),),
            artifact=version.digest(path),
            reason=self.why,
            **{**same, "path": path},
        )


def dismissed_before(
    decisions: Iterable[LastingDecision],
    version: ArtifactVersion,
    renamed: Mapping[str, str],
    today: date,
) -> list[Finding]:
    """Returns the findings that earlier decisions dismiss in these files; renamed ones included.

    Each decision is about one passage. Where that is gone, the decision has no effect.
    """
    # A decision follows its file when that is renamed: the passage is the same.
    now_at = {old: new for new, old in renamed.items()}
    found: dict[str, Finding] = {}
    for each in decisions:
        path = now_at.get(each.path, each.path)
        if each.may_hold(version, path, today):
            found[each.finding] = each.as_finding(version, path)
    placed = place(found.values(), version.text)
    return [
        with_occurrence(each, placed[each.id]) if each.id in placed else each
        for each in found.values()
        if each.omission or each.id in placed
    ]


def decision_about(
    issue: CritiqueIssue, constraint: str, decisions: Sequence[LastingDecision]
) -> str:
    """Returns why an issue is dismissed with all like it; empty if it is not."""
    covering = (
        each.why
        for each in decisions
        if each.covers(constraint, issue.rule_id, issue.path)
        # What was accepted was a problem of this severity. A worse one under the same rule is news.
        and issue.severity.rank >= each.severity.rank
    )
    return next((f"dismissed with all like it: {why}" for why in covering), "")


def ignored_rules(files: Mapping[str, str]) -> list[tuple[str, int, str]]:
    """Returns what comments ignore: the file, the line, and the rule."""
    return [
        (path, number, comment[1])
        for path, text in files.items()
        if "signoff:" in text
        for number, line in enumerate(text.split("\n"), start=1)
        if (comment := _COMMENT.search(line))
    ]


def adds_ignore(before: str, after: str) -> bool:
    """Whether a text has a comment that ignores a rule and was not there before."""
    old, new = (Counter(each[2] for each in ignored_rules({"": text})) for text in (before, after))
    return bool(new - old)


def comment_about(
    issue: CritiqueIssue,
    constraint: str,
    version: ArtifactVersion,
    trusted: Mapping[str, str] | None,
) -> str:
    """Returns why a comment in its file dismisses an issue; empty if none does.

    With `trusted`, texts by path, only comments count that are in these with the same passage: a
    change must not be able to switch off its own review.
    """
    text = version.files.get(issue.path, "")
    # In a text without a name, a comment would be a part of what is written.
    if not issue.path or "signoff:" not in text:
        return ""
    where = locate(version, issue.evidence, issue.path, issue.line)
    if where is None:
        return ""
    lines, first = text.split("\n"), where.line - 1
    base = None if trusted is None else f"\n{trusted.get(issue.path, '')}\n"
    names = {constraint, issue.rule_id, f"{constraint}/{issue.rule_id}"} - {""}
    # The comment may be on the line itself or on the one before it, as with other tools.
    for number in range(max(0, first - 1), where.end_line):
        comment = _COMMENT.search(lines[number])
        if not comment or comment[1] not in names:
            continue
        # Otherwise a change could copy or move a comment, or write something else below it.
        covered = "\n".join(lines[min(number, first) : where.end_line])
        if base is None or f"\n{covered}\n" in base:
            reason = _COMMENT_ENDS.sub("", comment[2]).strip()
            return f"ignored in the file: {reason or 'no reason given'}"
    return ""
