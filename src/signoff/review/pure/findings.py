"""The ledger of a run: all findings of all rounds.

A finding keeps one id however often it is reported, and by however many critics. The ledger is
an immutable value: recording critiques or applying a judge's decisions returns a new one.

An open finding that a critic did not report again was overlooked, or is no longer a finding for
that critic. Its passage is as it was, so only a judge can tell: such findings join the critiques.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from signoff.core.delta import Revision
from signoff.core.frozen import FrozenDict
from signoff.core.severity import DEFAULT_BLOCK_ON, Severity
from signoff.core.words import OPEN, FindingStatus, Label
from signoff.review.pure.artifact import ArtifactVersion, occurrence_fields, place, with_occurrence
from signoff.review.pure.critique import (
    Adjudication,
    AdjudicationDecision,
    Critique,
    CritiqueIssue,
    Overall,
    Pursuit,
)
from signoff.review.pure.evidence import Occurrence
from signoff.review.pure.finding import Finding, became, blocking_first, is_set_aside, normalize
from signoff.review.pure.identity import find_passages
from signoff.review.pure.similarity import same_claim

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
        # All findings are placed in the new text at once. One after the other, two findings about
        # equal passages could end up on the same one.
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
        # A constraint that nobody read in this round says nothing about its findings: they stay as
        # they are, open or fixed.
        was_reviewed = _review_check(critiques)
        not_reported = {
            finding.id: update.not_reported(finding, certain=_is_certain(finding, certain))
            for finding in self.findings.values()
            if finding.id not in reported and was_reviewed(finding)
        }
        # Findings are never removed, only closed: a problem that returns gets its old id and
        # history.
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
        return self._changed(ids, decision=decision)

    def mark_edited(self, ids: Iterable[str]) -> Ledger:
        """Returns the ledger after a refinement edited the passages of some findings."""
        return self._changed(ids, edited=True)

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
        findings = self.findings.values()
        addressed = [each.id for each in findings if each.status is FindingStatus.ADDRESSED]
        return self._changed(addressed, status=FindingStatus.FIXED)

    def _changed(self, ids: Iterable[str], **fields: Any) -> Ledger:
        known = [self.findings[each] for each in ids if each in self.findings]
        # Every finding keeps its place: the order of discovery is part of prompts and of reports.
        changed = {each.id: replace(each, **fields) for each in known}
        return replace(self, findings={**self.findings, **changed})

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


DECIDED = "a human decided about it"
"""The reason of a dismissal by a human's decision."""


def find_unchanged(findings: Sequence[Finding], artifact: ArtifactVersion) -> list[Finding]:
    """Returns the findings whose passage is as it was when they were last reported.

    The passage of a finding about something missing is its whole file. An edit may leave the
    quoted words and add to them, so edits that were made for the finding count as well.
    """
    placed = place(findings, artifact.text)
    return [each for each in findings if _is_unchanged(each, artifact, placed)]


def _is_unchanged(
    finding: Finding, artifact: ArtifactVersion, placed: Mapping[str, Occurrence]
) -> bool:
    if finding.artifact == artifact.digest(finding.path):
        return True
    if finding.edited or finding.omission:
        return False
    return finding.id in placed


def is_same(one: Finding, other: Finding) -> bool:
    """Whether two reports of a finding make the same claim, so that a decision holds for both.

    With a rule they do. Without one, a finding is everything that is wrong with its passage, and
    only the wording tells whether it is the same thing.
    """
    return bool(other.rule) or same_claim(one.finding, other.finding)


Report = tuple[str, str, CritiqueIssue]
"""A constraint, the reviewer and the issue."""


@dataclass(frozen=True)
class LedgerUpdate:
    """Updates findings with the critiques of one review."""

    iteration: int
    artifact: ArtifactVersion
    previous: ArtifactVersion
    placed: Mapping[str, Occurrence]
    """Where the findings of earlier reviews are now, without those whose passage is gone."""

    def reported(
        self,
        previous: Finding | None,
        finding_id: str,
        reports: Sequence[Report],
        passage: Occurrence | None,
    ) -> Finding:
        """Returns a finding after this review reported it, with the text of its worst report."""
        previous = self._here(previous) if previous is not None else None
        # Critics may rate one problem differently. The worst rating counts, as with one critic
        # alone.
        constraint, _, worst = min(reports, key=lambda report: report[2].severity.rank)
        critics = tuple(dict.fromkeys(critic for _, critic, _ in reports))
        ignored = all(is_set_aside(issue) for _, _, issue in reports)
        if previous is not None and ignored and not worst.set_aside and self.stays_open(previous):
            # A misquote or a doubt about what is known to be there does not close it.
            return self.not_reported(previous)
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
            artifact=self.artifact.digest(worst.path),
            unverified=all(issue.unverified for _, _, issue in reports),
            suggested_fix=worst.suggested_fix or "",
            path=worst.path,
            **(occurrence_fields(passage) if passage is not None else {}),
        )
        if ignored:
            now = replace(now, reason=worst.dismissed or worst.set_aside)
        # A decision is about a passage. It ends when the passage changes, because nobody has
        # decided about the new words.
        if previous is not None and self.is_unchanged(previous) and is_same(previous, now):
            now = replace(now, decision=previous.decision)
            if _stays_dismissed(previous, now):
                return replace(previous, last=self.iteration, artifact=now.artifact)
        if previous is not None and self.already_reported(previous):
            return _merge(previous, now, ignored=ignored, iteration=self.iteration)
        previous = self.undo_silence(previous)
        label = self.label(previous, now)
        aside = FindingStatus.DISMISSED if worst.dismissed else FindingStatus.IGNORED
        status = aside if ignored else FindingStatus.OPEN
        if previous is not None:
            returns = previous.returns + (label is Label.BACK)
            now = replace(now, first=previous.first, history=previous.history, returns=returns)
        entry = (self.iteration, became(status, label))
        return replace(now, status=status, label=label, history=(*now.history, entry))

    def not_reported(self, previous: Finding, *, certain: bool = False) -> Finding:
        """Returns a finding after its constraint was reviewed and no critic reported it."""
        previous = self._here(previous)
        if previous.status is not FindingStatus.OPEN or self.already_reported(previous):
            return previous
        # Critics overlook things. As long as the passage is as it was, their silence proves
        # nothing.
        if not certain and self.is_unchanged(previous):
            return self._still_open(previous)
        version = self.artifact.digest(previous.path)
        fixed = replace(
            previous,
            status=FindingStatus.FIXED,
            label=Label.FIXED,
            not_reported_again=False,
            artifact=version,
        )
        return fixed.with_history(self.iteration, Label.FIXED)

    def label(self, previous: Finding | None, now: Finding) -> Label:
        """Returns the label of a finding in this review."""
        if previous is not None:
            return Label.BACK if previous.status is FindingStatus.FIXED else Label.STILL_OPEN
        if now.omission or not self.previous:
            return Label.NEW
        before = self.previous.text(now.path).occurrences(now.quote)
        # A copy of a passage that was there already is found by its surroundings.
        known = {each.context for each in before}
        added = len(before) < now.occurrences and (now.before, now.after) not in known
        return Label.CAUSED_BY_FIX if added else Label.NEW

    def _here(self, finding: Finding) -> Finding:
        """Returns a finding with the place of its passage in this version."""
        found = self.placed.get(finding.id)
        return with_occurrence(finding, found) if found is not None else finding

    def _still_open(self, previous: Finding) -> Finding:
        """Returns a finding on an unchanged passage that no critic reported."""
        if previous.decision:
            # Critics report what a human decided about only if the decision is not followed.
            settled = replace(previous, status=FindingStatus.DISMISSED, reason=DECIDED)
            return settled.with_history(self.iteration, Label.DISMISSED)
        silent = replace(previous, label=Label.STILL_OPEN, not_reported_again=True)
        entry = (self.iteration, Label.STILL_OPEN)
        return silent if previous.history[-1] == entry else silent.with_history(*entry)

    def stays_open(self, previous: Finding) -> bool:
        """Whether a finding is open and its passage is as it was."""
        return previous.status is FindingStatus.OPEN and self.is_unchanged(previous)

    def undo_silence(self, previous: Finding | None) -> Finding | None:
        """Returns a finding as it was before another review of this round missed it.

        It was overlooked and not fixed. Without this it would count as back if the text
        has not changed since.
        """
        if previous is None:
            return None
        last = previous.history[-1]
        fixed = last == (self.iteration, Label.FIXED) and self._is_same_version(previous)
        silent = last == (self.iteration, Label.STILL_OPEN) and previous.not_reported_again
        if not fixed and not silent:
            return previous
        return replace(previous, status=FindingStatus.OPEN, history=previous.history[:-1])

    def is_unchanged(self, finding: Finding) -> bool:
        """Whether the passage of a finding is as it was when the finding was last reported."""
        return _is_unchanged(finding, self.artifact, self.placed)

    def already_reported(self, previous: Finding) -> bool:
        """Whether a review of this same text in this round reported it."""
        same = previous.last == self.iteration and self._is_same_version(previous)
        return same and previous.status is not FindingStatus.FIXED

    def _is_same_version(self, finding: Finding) -> bool:
        return finding.artifact == self.artifact.digest(finding.path)


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
    return replace(merged, status=FindingStatus.OPEN).with_history(iteration, previous.label)


def _stays_dismissed(previous: Finding, now: Finding) -> bool:
    """Whether a report of a dismissed finding adds nothing; one of a higher severity does."""
    dismissed = previous.status is FindingStatus.DISMISSED
    return dismissed and now.severity.rank >= previous.severity.rank


def with_not_reported(critiques: Sequence[Critique], ledger: Ledger) -> list[Critique]:
    """Returns critiques with the findings that their critics reported before, but not again."""
    added: dict[int, list[CritiqueIssue]] = {}
    reported = {issue.finding_id for critique in critiques for issue in critique.issues}
    for finding in ledger.findings.values():
        # Only what is open and was overlooked goes to the judge: what critics reported again is
        # there already, and closed findings are history.
        is_open = finding.status is FindingStatus.OPEN
        if not (is_open and finding.not_reported_again) or finding.id in reported:
            continue
        for position in _critiques_of(finding, critiques):
            added.setdefault(position, []).append(issue_of(finding))
    return [
        replace(critique, issues=(*critique.issues, *added.get(position, ())))
        for position, critique in enumerate(critiques)
    ]


def issue_of(finding: Finding) -> CritiqueIssue:
    """Returns a finding as an issue, in the words of its last report."""
    return CritiqueIssue(
        id=finding.id,
        rule_id=finding.rule,
        severity=finding.severity,
        location=finding.location,
        finding=finding.finding,
        evidence=finding.quote,
        suggested_fix=finding.suggested_fix or None,
        finding_id=finding.id,
        label=finding.label,
        not_reported_again=finding.not_reported_again,
        unverified=finding.unverified,
        path=finding.path,
        line=finding.line,
    )


def _critiques_of(finding: Finding, critiques: Sequence[Critique]) -> list[int]:
    """Returns the positions of the critiques it belongs to: those of its critics, or the first."""
    same = [
        n
        for n, each in enumerate(critiques)
        if each.constraint_id == finding.constraint and finding.path in each.files_read
    ]
    return [n for n in same if critiques[n].reviewer in finding.flagged_by] or same[:1]
