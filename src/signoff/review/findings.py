"""The ledger of a run: all findings of all rounds.

A finding keeps one id however often it is reported, and by however many critics. The ledger is
an immutable value: recording critiques or applying a judge's decisions returns a new one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any

from signoff.core.digest import SHORT, text_digest
from signoff.light_dataclass import frozen_dataclass, light_dataclass
from signoff.review.adjudication import Adjudication, AdjudicationDecision, Pursuit
from signoff.review.critique import Critique, CritiqueIssue, Overall
from signoff.review.evidence import ArtifactText
from signoff.review.finding import Finding, FindingStatus, Label, is_set_aside
from signoff.review.identity import identify, same_claim
from signoff.review.severity import Severity

__all__ = ["Finding", "FindingStatus", "Label", "Ledger", "summarize_round"]

_CLOSED = frozenset(
    {"", FindingStatus.FIXED.value, FindingStatus.DISMISSED.value, FindingStatus.IGNORED.value}
)
"""Labels after which a finding is not open; "" means that it was not reported yet."""


@frozen_dataclass()
class Ledger:
    """All findings of a run by id, in the order they were first reported."""

    findings: Mapping[str, Finding] = field(default_factory=dict)
    iteration: int = 0
    """The latest recorded iteration."""

    def record(
        self,
        *,
        iteration: int,
        critiques: Sequence[Critique],
        artifact: str,
        previous_artifact: str = "",
    ) -> tuple[Ledger, list[Critique]]:
        """Returns the ledger with these critiques, and the critiques with ids and labels.

        A finding is fixed if its constraint was reviewed and no critic reports it any more.
        A second review of the same text in the same iteration only adds findings.
        """
        update = _LedgerUpdate(iteration, artifact, previous_artifact)
        ids = identify(self.findings.values(), critiques, artifact)

        reported = {
            finding_id: update.reported(self.findings.get(finding_id), finding_id, reports)
            for finding_id, reports in _reports_by_finding(critiques, ids).items()
        }
        was_reviewed = _review_check(critiques)
        unreported = {
            finding.id: update.unreported(finding)
            for finding in self.findings.values()
            if finding.id not in reported and was_reviewed(finding)
        }
        ledger = Ledger({**self.findings, **unreported, **reported}, iteration)
        labeled = [
            _with_labels(critique, critique_ids, reported)
            for critique, critique_ids in zip(critiques, ids, strict=True)
        ]
        return ledger, labeled

    def apply(self, adjudication: Adjudication) -> Ledger:
        """Returns the ledger after a judge's decisions; dismissed findings are not open."""
        decided = {
            decision.finding_id: _apply_decision(
                self.findings[decision.finding_id], decision, adjudication.iteration
            )
            for decision in adjudication.decisions
            if decision.finding_id in self.findings
        }
        return replace(self, findings={**self.findings, **decided})

    def decide(self, ids: Iterable[str], decision: str) -> Ledger:
        """Returns the ledger after a human's decision about some findings."""
        decided = {
            each: replace(self.findings[each], decision=decision)
            for each in ids
            if each in self.findings
        }
        return replace(self, findings={**self.findings, **decided})

    def open(self, severities: Iterable[Severity] | None = None) -> list[Finding]:
        """Returns the open findings, the most severe first."""
        selected = set(Severity) if severities is None else set(severities)
        findings = [
            finding
            for finding in self.findings.values()
            if finding.status is FindingStatus.OPEN and finding.severity in selected
        ]
        return sorted(
            findings, key=lambda finding: (finding.severity.rank, finding.first, finding.id)
        )

    def to_json(self) -> dict[str, Any]:
        """Returns it as plain values."""
        return {
            "iteration": self.iteration,
            "entries": [finding.to_json() for finding in self.findings.values()],
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any] | None) -> Ledger:
        """Reads what `to_json` wrote; None is an empty ledger."""
        if not raw:
            return cls()
        findings = [Finding.from_json(entry) for entry in raw["entries"]]
        return cls({finding.id: finding for finding in findings}, raw["iteration"])


def summarize_round(ledger: Ledger, iteration: int) -> dict[str, Any]:
    """Returns the open findings at the end of an iteration by severity, and counts by label.

    Severities are those of the latest report. Ignored findings are not counted.
    """
    findings = ledger.findings.values()
    open_then = [finding for finding in findings if finding.label_at(iteration) not in _CLOSED]
    severities = Counter(finding.severity for finding in open_then)
    labels = Counter(_first_label(finding, iteration) for finding in open_then)
    fixed = sum(_fixed_in(finding, iteration) for finding in findings)
    return {
        "iteration": iteration,
        "open": {severity.value: severities[severity] for severity in Severity},
        **{label.value: labels[label.value] for label in Label},
        Label.FIXED.value: fixed,
    }


def version_digest(artifact: str) -> str:
    """Returns the digest that names a version of the artifact."""
    return text_digest(artifact)[:SHORT]


def is_unchanged(finding: Finding, artifact: ArtifactText, digest: str) -> bool:
    """Whether the passage of a finding is as it was when the finding was last reported.

    The passage of a finding about something missing is the whole artifact.
    """
    if finding.artifact == digest:
        return True
    return not finding.omission and artifact.contains(finding.quote)


_Report = tuple[str, str, CritiqueIssue]
"""A constraint, the reviewer and the issue."""


@light_dataclass(frozen=True)
class _LedgerUpdate:
    """Updates findings with the critiques of one review."""

    iteration: int
    artifact: str
    previous: str

    def reported(
        self, previous: Finding | None, finding_id: str, reports: Sequence[_Report]
    ) -> Finding:
        """Returns a finding after this review reported it, with the text of its worst report."""
        constraint, _, worst = min(reports, key=lambda report: report[2].severity.rank)
        critics = tuple(dict.fromkeys(critic for _, critic, _ in reports))
        now = Finding(
            id=finding_id,
            constraint=constraint,
            rule=worst.rule_id,
            severity=worst.severity,
            quote=worst.evidence,
            location=worst.location,
            finding=worst.finding,
            first=self.iteration,
            last=self.iteration,
            flagged_by=critics,
            artifact=self._digest,
            unverified=all(issue.unverified for _, _, issue in reports),
            suggested_fix=worst.suggested_fix or "",
        )
        ignored = all(is_set_aside(issue) for _, _, issue in reports)
        if ignored:
            now = replace(now, reason=worst.set_aside)
        if previous is not None and self.is_unchanged(previous) and same_claim(previous, now):
            now = replace(now, decision=previous.decision)
            if _stays_dismissed(previous, now):
                return replace(previous, last=self.iteration, artifact=self._digest)
        if previous is not None and self.already_reported(previous):
            return _merge(previous, now, ignored=ignored, iteration=self.iteration)
        previous = self.undo_fixed(previous)
        label = self.label(previous, now)
        status = FindingStatus.IGNORED if ignored else FindingStatus.OPEN
        if previous is not None:
            returns = previous.returns + (label is Label.REGRESSED)
            now = replace(now, first=previous.first, history=previous.history, returns=returns)
        entry = FindingStatus.IGNORED.value if ignored else label.value
        return replace(now, status=status, label=label).with_history(self.iteration, entry)

    def unreported(self, previous: Finding) -> Finding:
        """Returns a finding after its constraint was reviewed and no critic reported it."""
        closed = previous.status in (FindingStatus.FIXED, FindingStatus.DISMISSED)
        # What was refuted was never there to be fixed.
        closed = closed or (previous.status is FindingStatus.IGNORED and bool(previous.reason))
        if closed or self.already_reported(previous):
            return previous
        fixed = replace(
            previous, status=FindingStatus.FIXED, label=Label.FIXED, artifact=self._digest
        )
        return fixed.with_history(self.iteration, Label.FIXED.value)

    def label(self, previous: Finding | None, now: Finding) -> Label:
        """Returns the label of a finding in this review."""
        if previous is not None:
            return Label.REGRESSED if previous.status is FindingStatus.FIXED else Label.PERSISTING
        if now.omission or not self.previous:
            return Label.NEW
        added = not self._before.contains(now.quote) and self._text.contains(now.quote)
        return Label.INTRODUCED if added else Label.NEW

    def undo_fixed(self, previous: Finding | None) -> Finding | None:
        """Returns a finding as it was before another review of this same text missed it.

        The text has not changed since, so the finding was overlooked and not fixed. Without
        this it would count as a regression.
        """
        fixed_now = (self.iteration, Label.FIXED.value)
        if (
            previous is None
            or previous.artifact != self._digest
            or previous.history[-1] != fixed_now
        ):
            return previous
        return replace(previous, status=FindingStatus.OPEN, history=previous.history[:-1])

    def is_unchanged(self, finding: Finding) -> bool:
        """Whether the passage of a finding is as it was when the finding was last reported."""
        return is_unchanged(finding, self._text, self._digest)

    def already_reported(self, previous: Finding) -> bool:
        """Whether a review of this same text in this iteration reported it."""
        same = (previous.last, previous.artifact) == (self.iteration, self._digest)
        return same and previous.status is not FindingStatus.FIXED

    @cached_property
    def _digest(self) -> str:
        return version_digest(self.artifact)

    @cached_property
    def _text(self) -> ArtifactText:
        return ArtifactText(self.artifact)

    @cached_property
    def _before(self) -> ArtifactText:
        return ArtifactText(self.previous)


def _merge(previous: Finding, now: Finding, *, ignored: bool, iteration: int) -> Finding:
    """Returns a finding that another review of the same text reports as well."""
    worse = now if now.severity.rank < previous.severity.rank else previous
    critics = tuple(dict.fromkeys((*previous.flagged_by, *now.flagged_by)))
    merged = replace(
        previous,
        severity=worse.severity,
        flagged_by=critics,
        unverified=previous.unverified and now.unverified,
    )
    if ignored or previous.status is FindingStatus.OPEN:
        return merged
    return replace(merged, status=FindingStatus.OPEN).with_history(iteration, previous.label.value)


def _stays_dismissed(previous: Finding, now: Finding) -> bool:
    """Whether a report of a dismissed finding adds nothing; one of a higher severity does."""
    dismissed = previous.status is FindingStatus.DISMISSED
    return dismissed and now.severity.rank >= previous.severity.rank


def _apply_decision(finding: Finding, decision: AdjudicationDecision, iteration: int) -> Finding:
    pursuit = decision.status
    if pursuit is Pursuit.DISMISSED and finding.status is FindingStatus.OPEN:
        reason = decision.rationale or ""
        dismissed = replace(finding, status=FindingStatus.DISMISSED, reason=reason)
        return dismissed.with_history(iteration, FindingStatus.DISMISSED.value)
    if pursuit is Pursuit.PURSUING and finding.status is FindingStatus.DISMISSED:
        reopened = replace(finding, status=FindingStatus.OPEN, reason="")
        return reopened.with_history(iteration, finding.label.value)
    return finding


def _reports_by_finding(
    critiques: Sequence[Critique], ids: Sequence[Sequence[str]]
) -> dict[str, list[_Report]]:
    reports: dict[str, list[_Report]] = {}
    for critique, critique_ids in zip(critiques, ids, strict=True):
        for finding_id, issue in zip(critique_ids, critique.issues, strict=True):
            report = (critique.constraint_id, critique.reviewer, issue)
            reports.setdefault(finding_id, []).append(report)
    return reports


def _review_check(critiques: Sequence[Critique]) -> Callable[[Finding], bool]:
    """Returns a function that tells whether the critiques looked for a finding.

    They did if its constraint was reviewed. But if a critic that reported it before gave no
    usable critique this time, silence is no sign that it was fixed.
    """
    failed = {(c.constraint_id, c.reviewer) for c in critiques if c.overall is Overall.ERROR}
    reviewed = {c.constraint_id for c in critiques if c.overall is not Overall.ERROR}

    def was_reviewed(finding: Finding) -> bool:
        lost = any((finding.constraint, critic) in failed for critic in finding.flagged_by)
        return finding.constraint in reviewed and not lost

    return was_reviewed


def _with_labels(
    critique: Critique, ids: Sequence[str], findings: Mapping[str, Finding]
) -> Critique:
    issues = (
        _with_label(issue, findings[finding_id])
        for issue, finding_id in zip(critique.issues, ids, strict=True)
    )
    return replace(critique, issues=tuple(issues))


def _with_label(issue: CritiqueIssue, finding: Finding) -> CritiqueIssue:
    labeled = replace(issue, finding_id=finding.id, label=finding.label.value)
    if finding.status is not FindingStatus.DISMISSED:
        return labeled
    return replace(labeled, set_aside=f"dismissed before: {finding.reason or 'no reason given'}")


def _fixed_in(finding: Finding, iteration: int) -> bool:
    """Whether it was open before this iteration and fixed at its end."""
    entries = [entry for entry in finding.history if entry[0] <= iteration]
    fixed = entries[-1:] == [(iteration, Label.FIXED.value)]
    return fixed and entries[-2][1] != FindingStatus.IGNORED


def _first_label(finding: Finding, iteration: int) -> str:
    """Returns the first open label of an iteration: a new finding stays new when reported again."""
    labels = (label for when, label in finding.history if when == iteration)
    return next((label for label in labels if label not in _CLOSED), "")
