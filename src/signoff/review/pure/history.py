"""What happened in a review: versions, rounds, findings and what became of them, and judgments.

This is the one model behind everything that shows a review: the commands, the report, the exports
and the live view. A notation folds its run's journal into it; nothing here reads files or a store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from signoff.core.amounts import count
from signoff.core.events import Event
from signoff.core.one_line import one_line
from signoff.core.severity import DEFAULT_BLOCK_ON, Severity
from signoff.core.words import PASSED, TO_FIX, VERDICT_WORDS, FindingStatus, Label
from signoff.review.pure.artifact import ArtifactVersion, Location, locate_finding
from signoff.review.pure.coverage import ConstraintResult, ReviewCoverage
from signoff.review.pure.diff import DiffHunk, diff_files, tied_labels
from signoff.review.pure.finding import Finding, blocking_first, group_equal

PROJECT = "(project)"
"""The place of a finding that is about no file."""


@dataclass(frozen=True)
class Version:
    """One version of the artifact."""

    number: int
    """Counted from 1."""
    round: int
    """The round that wrote it."""
    step: str
    kind: str
    """The kind of step that wrote it: generate or refine."""
    files: Mapping[str, str]
    """Its texts by path; a single text has no name."""
    agent: str = ""
    """The agent that wrote it; empty if exact edits did."""
    at: float = 0.0
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The findings that each hunk answers, by `label_key`; other hunks answer none."""

    @cached_property
    def content(self) -> ArtifactVersion:
        """Its texts, prepared for looking up quotes."""
        return ArtifactVersion(self.files)


@dataclass(frozen=True)
class Judgment:
    """A judge's verdict and its decisions about findings."""

    round: int
    step: str
    by: str
    """The judge: an agent, or `policy` for the rules."""
    verdict: str
    stated: str = ""
    """The judge's own verdict, if the engine overruled it."""
    dismissed: Mapping[str, str] = field(default_factory=dict)
    """Findings that it dismissed, and why."""
    to_fix: tuple[str, ...] = ()
    """Findings that it did not dismiss."""
    fixes: bool = True
    """Whether a step of the run fixes what was not dismissed."""
    blocking: int = 0
    """How many of these block."""
    notes: tuple[str, ...] = ()
    at: float = 0.0

    @property
    def words(self) -> str:
        """The verdict in a few words; a run that fixes nothing has nothing rewritten."""
        dismissed = [f"{len(self.dismissed)} dismissed"] if self.dismissed else []
        if self.to_fix and not self.fixes:
            plural = "" if len(self.to_fix) == 1 else "s"
            blocking = f"{self.blocking:,}" if self.blocking else "none"
            opened = f"{len(self.to_fix):,} finding{plural} open, {blocking} blocking"
            return ", ".join([opened, *dismissed])
        left = [f"{len(self.to_fix)} {self.left}"] if self.to_fix else []
        return ", ".join([self.verdict_words, *left, *dismissed])

    @property
    def verdict_words(self) -> str:
        """The verdict alone: `passed` or `asks for changes`."""
        return VERDICT_WORDS.get(self.verdict, self.verdict.lower())

    @property
    def left(self) -> str:
        """What the findings are that were not dismissed: `to fix`, or only `open`."""
        is_fixed = self.fixes and self.verdict_words != PASSED
        return TO_FIX if is_fixed else FindingStatus.OPEN.words


@dataclass(frozen=True)
class Round:
    """One round: what was reviewed, and what came of it."""

    number: int
    reviewed: int = 0
    """The number of the version that was reviewed; 0 if none was."""
    written: tuple[int, ...] = ()
    """The numbers of the versions that fixes of this round wrote."""
    counts: Mapping[str, Any] = field(default_factory=dict)
    """Open findings by severity at its end, and how many are new, fixed and so on."""
    judgments: tuple[Judgment, ...] = ()


@dataclass(frozen=True)
class ReviewHistory:
    """A review from its first version to its last."""

    goal: str = ""
    file_name: str = ""
    """The name that a single text is shown with."""
    constraints: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The constraints as the run was started with them, by id."""
    versions: tuple[Version, ...] = ()
    rounds: tuple[Round, ...] = ()
    findings: tuple[Finding, ...] = ()
    """Every finding of every round, in the order they were first reported."""
    issues: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The latest report of each finding as its critic wrote it, by the id of the finding."""
    block_on: frozenset[Severity] = frozenset(DEFAULT_BLOCK_ON)
    """The severities that block."""
    warnings: tuple[Mapping[str, Any], ...] = ()
    passed: bool = False
    """Whether the last version passed review: the last verdict asks for no changes."""
    approved_by: str = ""
    """Who approved the last version at the sign-off that ended the run."""
    written: Mapping[str, list[str]] = field(default_factory=dict)
    """The files of the project that were `written` at the end, or why not: `conflicts`."""
    best: int = 0
    """The number of the best reviewed version; 0 if none was ranked."""
    read_by: tuple[ConstraintResult, ...] = ()
    """Who has read the last version against each constraint, and with which result."""
    coverage: ReviewCoverage = field(default_factory=ReviewCoverage)
    """What was not read so far, and why."""

    def round(self, number: int) -> Round | None:
        """Returns a round by its number."""
        return next((each for each in self.rounds if each.number == number), None)

    def version(self, number: int) -> Version | None:
        """Returns a version by its number."""
        return self.versions[number - 1] if 0 < number <= len(self.versions) else None

    def reviewed_in(self, number: int) -> Version | None:
        """Returns the version that a round reviewed, else the latest one before its end."""
        found = self.round(number)
        if found is not None and found.reviewed:
            return self.version(found.reviewed)
        return next((v for v in reversed(self.versions) if v.round <= number), None)

    @property
    def result(self) -> Version | None:
        """The version that passed review, else the best reviewed one, else the latest."""
        best = None if self.passed else self.version(self.best)
        return best or (self.versions[-1] if self.versions else None)

    def fix_of(self, number: int) -> tuple[Version, Version] | None:
        """Returns the versions before and after the fixes of a round; None if it fixed nothing."""
        found = self.round(number)
        after = self.version(found.written[-1]) if found and found.written else None
        before = self.version(found.written[0] - 1) if found and after else None
        return (before, after) if before and after else None

    def changes(self, before: Version, after: Version) -> dict[str, list[DiffHunk]]:
        """Returns the hunks between two versions by path, with the findings that they answer."""
        if before.number >= after.number:
            return diff_files(before.files, after.files)
        # Labels are recorded by line, so they fit only what the version itself has changed. The
        # hunks of a wider change name findings by the words that they change.
        labels = after.labels if after.number == before.number + 1 else {}
        return diff_files(before.files, after.files, labels or self._tied(before, after))

    def _tied(self, before: Version, after: Version) -> dict[str, tuple[str, ...]]:
        """Returns the findings that the hunks of a version without labels may answer."""
        asked: dict[str, list[tuple[str, str]]] = {}
        for each in self.findings:
            if each.first <= after.round and each.last >= before.round:
                asked.setdefault(each.path, []).append((each.id, each.quote))
        return tied_labels(before.files, after.files, asked)

    def open_findings(self) -> list[Finding]:
        """Returns the open findings in the order of a list."""
        return self.listed(each for each in self.findings if each.status is FindingStatus.OPEN)

    def listed(self, findings: Iterable[Finding]) -> list[Finding]:
        """Returns findings in the order of a list: what blocks first, then by file and line."""
        return sorted(findings, key=blocking_first(self.block_on))

    def location(self, finding: Finding, version: Version | None = None) -> Location | None:
        """Returns where a finding is in a version, by default where it was last reported."""
        if version is not None:
            return locate_finding(version.content, finding)
        if finding.id not in self._locations:
            reported = self.reviewed_in(finding.last)
            found = locate_finding(reported.content, finding) if reported is not None else None
            self._locations[finding.id] = found
        return self._locations[finding.id]

    @cached_property
    def _locations(self) -> dict[str, Location | None]:
        """Where findings were last reported, as far as that was looked up."""
        return {}

    def name_of(self, path: str) -> str:
        """Returns the name that a file of the artifact is shown with."""
        return path or self.file_name

    def file_of(self, finding: Finding) -> str | None:
        """Returns the name of the file that a finding is about; None if it is about the project.

        A check of a whole project, such as its tests, is about none of its files.
        """
        # A check of the whole project may name a file that the review is not about.
        files = self.versions[-1].files if self.versions else {}
        return self.name_of(finding.path) if finding.path in files or not files else None

    def place(self, finding: Finding) -> str:
        """Returns the file and the line of a finding, as compilers write it: `guide.md:12`."""
        if self.file_of(finding) is None:
            return PROJECT
        found = self.location(finding)
        line = f":{found.line}" if found is not None else ""
        return f"{self.name_of(finding.path)}{line}"

    @cached_property
    def dismissals(self) -> dict[str, Judgment]:
        """The judgment that last dismissed each finding, by its id."""
        judged = (judgment for each in self.rounds for judgment in each.judgments)
        return {finding: judgment for judgment in judged for finding in judgment.dismissed}

    @cached_property
    def answers(self) -> dict[str, int]:
        """The version whose hunks last answered each finding, by its id."""
        return {
            finding: version.number
            for version in self.versions
            for findings in version.labels.values()
            for finding in findings
        }


class Result(Protocol):
    """What says how a review went: the history of a review, or the state of its run."""

    @property
    def approved_by(self) -> str: ...
    @property
    def passed(self) -> bool: ...


def describe_result(result: Result, *, completed: bool) -> str:
    """Returns how a review that has ended went: `passed review`, `approved by ann`."""
    # Judges and rules pass a text; only humans approve it.
    if completed:
        return f"approved by {result.approved_by}" if result.approved_by else "passed review"
    return "passed review, not approved" if result.passed else "has not passed review"


def describe_status(finding: Finding) -> str:
    """Returns what became of a finding and when: `open since round 1`, `fixed in round 2`."""
    when = finding.history[-1][0] if finding.history else finding.last
    match finding.status:
        case FindingStatus.OPEN if finding.returns:
            returned = max(n for n, label in finding.history if label is Label.BACK)
            return f"{Label.BACK.words} since round {returned}"
        case FindingStatus.OPEN:
            return f"open since round {finding.first}"
        case FindingStatus.ADDRESSED:
            return f"fixed in round {when}, {finding.status.words}"
        case FindingStatus.DISMISSED if when == 0:
            return "dismissed before this run"
        case FindingStatus.FIXED | FindingStatus.DISMISSED:
            return f"{finding.became.words} in round {when}"
        case FindingStatus.IGNORED:
            return finding.became.words


def labels_by_round(history: ReviewHistory) -> dict[int, list[tuple[Finding, Label]]]:
    """Returns the findings of each round with their label at its end, in the order of a list."""
    table: dict[int, list[tuple[Finding, Label]]] = {}
    for finding in history.listed(history.findings):
        labels = dict(finding.history)
        for number, label in labels.items():
            table.setdefault(number, []).append((finding, label))
    return dict(sorted(table.items()))


def open_counts(findings: Sequence[Finding]) -> dict[str, int]:
    """Returns how many findings of each severity there are, the worst first."""
    ranked = sorted({each.severity for each in findings}, key=lambda severity: severity.rank)
    return {s.value: sum(each.severity is s for each in findings) for s in ranked}


_ALWAYS_SHOWN = ("not_reported_again", "suggested_fix", "edited", "reason", "decision")
"""Fields of a finding that its own JSON leaves out where they are empty."""


def finding_to_json(history: ReviewHistory, finding: Finding) -> dict[str, Any]:
    """Returns a finding for programs: what was reported, where, and what became of it."""
    found, judgment = history.location(finding), history.dismissals.get(finding.id)
    # Findings keep what judges and people need; the exact edit is only in the critic's own report.
    edit = (history.issues.get(finding.id) or {}).get("edit")
    return {
        "awaiting_sign_off": False,
        **{name: getattr(finding, name) for name in _ALWAYS_SHOWN},
        **finding.facts(),
        "path": history.file_of(finding) or "",
        "line": found.line if found else None,
        "column": found.column if found else None,
        "end_line": found.end_line if found else None,
        "end_column": found.end_column if found else None,
        "answered_in": history.answers.get(finding.id),
        "dismissed_by": judgment.by if judgment else None,
        "edit": edit,
    }


def change_to_json(history: ReviewHistory, before: Version, after: Version) -> dict[str, Any]:
    """Returns the changes between two versions for programs."""
    files = [
        {
            "path": history.name_of(path),
            "hunks": [
                {
                    "diff": "\n".join([hunk.header, *hunk.lines]),
                    "findings": list(hunk.findings),
                    "added": hunk.added,
                    "removed": hunk.removed,
                }
                for hunk in hunks
            ],
        }
        for path, hunks in history.changes(before, after).items()
    ]
    how = {"step": after.step, "kind": after.kind, "agent": after.agent or None}
    return {"round": after.round, "from": before.number, "to": after.number, **how, "files": files}


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


ReviewNews = IssuesReported | ArtifactChanged | Judgment


def log_lines(
    apply: Callable[[Event], Iterable[ReviewNews]],
) -> Callable[[Event], list[str]]:
    """Returns what the log of a run tells of each event; `apply` follows its review."""
    return lambda event: [line for each in apply(event) for line in _describe(each)]


def _describe(news: ReviewNews) -> Iterator[str]:
    """Yields what has just happened in a review in lines."""
    match news:
        case IssuesReported(usable=False):
            yield f"{_about(news)}: no usable review by {news.answered_by or news.reviewer}"
        case IssuesReported(issues=()):
            yield f"{_about(news)}: passed by {_decider(news)}"
        case IssuesReported():
            for (issue, place), *equal in group_equal(
                zip(news.issues, news.places, strict=True), _entry
            ):
                severity = Severity.read(issue.get("severity"))
                text = one_line(str(issue.get("finding", "")), LONGEST_NEWS)
                rule = str(issue.get("rule_id") or news.constraint)
                about = news.constraint if rule == news.constraint else f"{news.constraint}/{rule}"
                times = f" ({len(equal) + 1:,} times)" if equal else ""
                aside = issue.get("set_aside") or issue.get("dismissed")
                why = f" (does not count: {aside})" if aside else ""
                yield f"{severity} {about} {place}: {text}{times}{why}"
        case ArtifactChanged():
            yield _change(news)
        case Judgment():
            yield f"{news.by}: {news.words}"


_SHOWN = ("path", "rule_id", "severity", "finding", "evidence", "set_aside", "dismissed")


def _entry(reported: tuple[Mapping[str, Any], str]) -> tuple[object, ...]:
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
