"""Updates findings with the critiques of one review: what is new, still there, or fixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from signoff.core.words import FindingStatus, Label
from signoff.review.artifact import ArtifactVersion
from signoff.review.critique import CritiqueIssue
from signoff.review.evidence import Occurrence
from signoff.review.finding import Finding, became, is_set_aside
from signoff.review.occurrence import occurrence_fields, place, with_occurrence
from signoff.review.similarity import same_claim

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
