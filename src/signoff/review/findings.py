"""The ledger of a run: all findings of all rounds.

A finding keeps one id however often it is reported, and by however many critics. The ledger is
an immutable value: recording critiques or applying a judge's decisions returns a new one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from signoff.core.delta import Revision
from signoff.core.frozen import FrozenDict
from signoff.core.words import OPEN, FindingStatus, Label
from signoff.review.adjudication import Adjudication, AdjudicationDecision, Pursuit
from signoff.review.artifact import ArtifactVersion
from signoff.review.critique import Critique, CritiqueIssue, Overall
from signoff.review.finding import Finding, blocking_first, is_set_aside, normalize
from signoff.review.identity import find_passages
from signoff.review.ledger_update import LedgerUpdate, Report, find_unchanged
from signoff.review.occurrence import place
from signoff.review.severity import DEFAULT_BLOCK_ON, Severity

__all__ = ["Finding", "Ledger", "summarize_round"]


@dataclass(frozen=True)
class Ledger:
    """All findings of a run by id, in the order they were first reported."""

    findings: Mapping[str, Finding] = field(default_factory=dict)
    iteration: int = 0
    """The latest recorded round."""

    def record(
        self,
        *,
        iteration: int,
        critiques: Sequence[Critique],
        artifact: str | Mapping[str, str] | ArtifactVersion,
        previous_artifact: str | Mapping[str, str] | ArtifactVersion = "",
        certain: Collection[tuple[str, str]] = (),
    ) -> tuple[Ledger, list[Critique]]:
        """Returns the ledger with these critiques, and the critiques with ids and labels.

        A finding is fixed if its constraint was reviewed, no critic reports it any more and its
        passage has changed. Critics overlook things, so silence alone is not enough, except that
        of the `certain` ones: constraints and reviewers that are programs or humans.
        A second review of the same text in the same round only adds findings. An artifact is
        one text, or texts by path; a critique that names files looks for findings in these only.
        """
        artifact = ArtifactVersion.of(artifact)
        placed = place(self.findings.values(), artifact.text)
        before = ArtifactVersion.of(previous_artifact)
        update = LedgerUpdate(iteration, artifact, before, placed)
        identities = find_passages(self.findings.values(), critiques, artifact)
        ids = [[each.id for each in each_critique] for each_critique in identities]
        passages = {each.id: each.passage for found in identities for each in found if each.passage}

        reported = {
            finding_id: update.reported(
                self.findings.get(finding_id), finding_id, reports, passages.get(finding_id)
            )
            for finding_id, reports in _reports_by_finding(critiques, ids).items()
        }
        was_reviewed = _review_check(critiques)
        not_reported = {
            finding.id: update.not_reported(finding, certain=_is_certain(finding, certain))
            for finding in self.findings.values()
            if finding.id not in reported and was_reviewed(finding)
        }
        ledger = Ledger({**self.findings, **not_reported, **reported}, iteration)
        labeled = [
            _with_labels(critique, critique_ids, reported)
            for critique, critique_ids in zip(critiques, ids, strict=True)
        ]
        return ledger, labeled

    def apply(self, adjudication: Adjudication) -> Ledger:
        """Returns the ledger after a judge's decisions; dismissed findings are not open."""
        decided = {
            decision.finding_id: _apply_decision(
                self.findings[decision.finding_id], decision, adjudication.round
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

    def mark_edited(self, ids: Iterable[str]) -> Ledger:
        """Returns the ledger after a refinement edited the passages of some findings."""
        edited = {
            each: replace(self.findings[each], edited=True) for each in ids if each in self.findings
        }
        return replace(self, findings={**self.findings, **edited})

    def address(self, constraint: str, artifact: ArtifactVersion, iteration: int) -> Ledger:
        """Returns the ledger with open findings of a constraint addressed if its file changed.

        No critic reports these findings, so this is also where one stays open in a later round.
        """
        asked = [each for each in self.open() if each.constraint == constraint]
        unchanged = find_unchanged(asked, artifact)
        unmet = {each.id for each in unchanged}
        met = [each for each in asked if each.id not in unmet]
        entry = (iteration, Label.STILL_OPEN)
        still_open = {
            each.id: replace(each, label=Label.STILL_OPEN).with_history(*entry)
            for each in unchanged
            if each.first < iteration and each.history[-1] != entry
        }
        addressed = {
            each.id: replace(
                each, status=FindingStatus.ADDRESSED, label=Label.FIXED, not_reported_again=False
            ).with_history(iteration, Label.FIXED)
            for each in met
        }
        return replace(self, findings={**self.findings, **still_open, **addressed})

    def settle(self) -> Ledger:
        """Returns the ledger with what was addressed fixed: a human has decided about it."""
        addressed = FindingStatus.ADDRESSED
        settled = {
            each.id: replace(each, status=FindingStatus.FIXED)
            for each in self.findings.values()
            if each.status is addressed
        }
        return replace(self, findings={**self.findings, **settled})

    def open(self, block_on: Collection[Severity] = DEFAULT_BLOCK_ON) -> list[Finding]:
        """Returns the open findings, those that block first, then by file and line."""
        findings = [each for each in self.findings.values() if each.status is FindingStatus.OPEN]
        return sorted(findings, key=blocking_first(block_on))

    def to_json(self) -> dict[str, Any]:
        """Returns it as plain values.

        After a step most findings are what they were, so only the others are stored again.
        """
        entries = [finding.to_json() for finding in self.findings.values()]
        return Revision(round=self.iteration, entries=entries)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any] | None) -> Ledger:
        """Reads what `to_json` wrote; None is an empty ledger."""
        if not raw:
            return cls()
        # A state is looked at many times in a step, and has thousands of findings.
        known = getattr(raw, "memo", None)
        if isinstance(known, cls):
            return known
        findings = [Finding.from_json(entry) for entry in raw["entries"]]
        ledger = cls({finding.id: finding for finding in findings}, raw["round"])
        if isinstance(raw, FrozenDict):
            raw.memo = ledger
        return ledger


def summarize_round(ledger: Ledger, iteration: int) -> dict[str, Any]:
    """Returns the open findings at the end of a round by severity, and counts by label.

    Severities are those of the latest report. Ignored findings are not counted.
    """
    findings = ledger.findings.values()
    open_then = [each for each in findings if (then := each.label_at(iteration)) and then.is_open]
    severities = Counter(finding.severity for finding in open_then)
    labels = Counter(_first_label(finding, iteration) for finding in open_then)
    fixed = sum(_fixed_in(finding, iteration) for finding in findings)
    return {
        "round": iteration,
        "open": {severity.value: severities[severity] for severity in Severity},
        **{label.value: labels[label] for label in OPEN},
        Label.FIXED.value: fixed,
    }


def _apply_decision(finding: Finding, decision: AdjudicationDecision, iteration: int) -> Finding:
    pursuit = decision.status
    if pursuit is Pursuit.DISMISSED and finding.status is FindingStatus.OPEN:
        reason = decision.rationale or ""
        dismissed = replace(finding, status=FindingStatus.DISMISSED, reason=reason)
        return dismissed.with_history(iteration, Label.DISMISSED)
    if pursuit is Pursuit.PURSUING and finding.status is FindingStatus.DISMISSED:
        reopened = replace(finding, status=FindingStatus.OPEN, reason="")
        return reopened.with_history(iteration, finding.label)
    return finding


def _reports_by_finding(
    critiques: Sequence[Critique], ids: Sequence[Sequence[str]]
) -> dict[str, list[Report]]:
    reports: dict[str, list[Report]] = {}
    for critique, critique_ids in zip(critiques, ids, strict=True):
        for finding_id, issue in zip(critique_ids, critique.issues, strict=True):
            report = (critique.constraint_id, critique.reviewer, issue)
            reports.setdefault(finding_id, []).append(report)
    return reports


def _review_check(critiques: Sequence[Critique]) -> Callable[[Finding], bool]:
    """Returns a function that tells whether the critiques looked for a finding.

    They did if its file was reviewed against its constraint. But if a critic that reported it
    before gave no usable critique this time, silence is no sign that it was fixed.
    """
    reviews = [(c, path) for c in critiques for path in c.files_read]
    failed = {(c.constraint_id, p, c.reviewer) for c, p in reviews if c.overall is Overall.ERROR}
    reviewed = {(c.constraint_id, p) for c, p in reviews if c.overall is not Overall.ERROR}

    def was_reviewed(finding: Finding) -> bool:
        about = (finding.constraint, finding.path)
        return about in reviewed and not any((*about, c) in failed for c in finding.flagged_by)

    return was_reviewed


def _is_certain(finding: Finding, certain: Collection[tuple[str, str]]) -> bool:
    """Whether a critic that reported the finding would not have overlooked it this time."""
    return any((finding.constraint, critic) in certain for critic in finding.flagged_by)


def _with_labels(
    critique: Critique, ids: Sequence[str], findings: Mapping[str, Finding]
) -> Critique:
    issues = (
        _with_label(issue, findings[finding_id])
        for issue, finding_id in zip(critique.issues, ids, strict=True)
    )
    return replace(critique, issues=tuple(issues))


def _with_label(issue: CritiqueIssue, finding: Finding) -> CritiqueIssue:
    label = Label.IGNORED if is_set_aside(issue) else finding.history[-1][1]
    labeled = replace(issue, finding_id=finding.id, label=label)
    if finding.status is not FindingStatus.DISMISSED:
        return labeled
    # Without a rule, only the wording tells that it is the finding that was dismissed.
    reworded = not issue.rule_id and normalize(issue.finding) != normalize(finding.finding)
    how = f"dismissed as the same as {finding.id}" if reworded else "dismissed before"
    return replace(labeled, set_aside=f"{how}: {finding.reason or 'no reason given'}")


def _fixed_in(finding: Finding, iteration: int) -> bool:
    """Whether it was open before this round and fixed at its end."""
    entries = [entry for entry in finding.history if entry[0] <= iteration]
    fixed = entries[-1:] == [(iteration, Label.FIXED)]
    return fixed and entries[-2][1] is not Label.IGNORED


def _first_label(finding: Finding, iteration: int) -> Label | None:
    """Returns the first open label of a round: a new finding stays new when reported again."""
    labels = (label for when, label in finding.history if when == iteration)
    return next((label for label in labels if label.is_open), None)
