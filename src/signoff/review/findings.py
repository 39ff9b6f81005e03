"""The ledger of a run: every finding ever made, from round to round.

A finding keeps one id however often it is reported, and by however many critics. The ledger
is a value: taking critiques in, or a judge's decisions, returns another one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from signoff.core.digest import SHORT, text_digest
from signoff.review.adjudication import Adjudication, Pursuit
from signoff.review.critique import Critique, CritiqueIssue, Overall
from signoff.review.evidence import ArtifactText
from signoff.review.finding import Finding, FindingStatus, Label, is_set_aside
from signoff.review.identity import identify
from signoff.review.severity import Severity

__all__ = ["Finding", "FindingStatus", "Label", "Ledger", "summarize_round"]

_CLOSED = frozenset(
    {"", FindingStatus.FIXED.value, FindingStatus.DISMISSED.value, FindingStatus.IGNORED.value}
)
"""Words of a story after which a finding is not open; nothing at all is one of them."""


@dataclass(frozen=True)
class Ledger:
    """All findings of a run by id, in the order they were found."""

    findings: Mapping[str, Finding] = field(default_factory=dict)
    iteration: int = 0
    """The latest iteration that was taken in."""

    def record(
        self,
        *,
        iteration: int,
        critiques: Sequence[Critique],
        artifact: str,
        previous_artifact: str = "",
    ) -> tuple[Ledger, list[Critique]]:
        """Returns the ledger with these critiques in it, and them with ids and labels.

        Findings of a constraint that was read, and that nobody reports any more, are fixed.
        A second reading of the same text in the same iteration takes nothing back.
        """
        reading = _LedgerUpdate(iteration, artifact, previous_artifact)
        ids = identify(self.findings.values(), critiques, artifact)

        seen = {
            each: reading.seen(self.findings.get(each), each, said)
            for each, said in _by_finding(critiques, ids).items()
        }
        was_read = _readers(critiques)
        gone = {
            each.id: reading.gone(each)
            for each in self.findings.values()
            if each.id not in seen and was_read(each)
        }
        ledger = Ledger({**self.findings, **gone, **seen}, iteration)
        told = [_labelled(*each, seen) for each in zip(critiques, ids, strict=True)]
        return ledger, told

    def apply(self, adjudication: Adjudication) -> Ledger:
        """Returns the ledger with a judge's decisions in it: what is dismissed is not open."""
        decided = {
            each.finding_id: _decided(
                self.findings[each.finding_id], each.status, adjudication.iteration
            )
            for each in adjudication.decisions
            if each.finding_id in self.findings
        }
        return replace(self, findings={**self.findings, **decided})

    def open(self, severities: Iterable[Severity] | None = None) -> list[Finding]:
        """Returns what is open, the worst first."""
        wanted = set(Severity) if severities is None else set(severities)
        found = [
            each
            for each in self.findings.values()
            if each.status is FindingStatus.OPEN and each.severity in wanted
        ]
        return sorted(found, key=lambda each: (each.severity.rank, each.first, each.id))

    def to_json(self) -> dict[str, Any]:
        """Returns it as plain values."""
        return {
            "iteration": self.iteration,
            "entries": [each.to_json() for each in self.findings.values()],
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any] | None) -> Ledger:
        """Reads what `to_json` wrote; nothing is an empty ledger."""
        if not raw:
            return cls()
        entries = [Finding.from_json(each) for each in raw["entries"]]
        return cls({each.id: each for each in entries}, raw["iteration"])


def summarize_round(ledger: Ledger, iteration: int) -> dict[str, Any]:
    """Returns what was open at the end of an iteration by severity, and what had happened.

    Severities are those of the latest report. What was set aside is not counted.
    """
    opened = [each for each in ledger.findings.values() if each.label_at(iteration) not in _CLOSED]
    severities = Counter(each.severity for each in opened)
    labels = Counter(_first_word(each, iteration) for each in opened)
    fixed = sum(_fixed_in(each, iteration) for each in ledger.findings.values())
    return {
        "iteration": iteration,
        "open": {severity.value: severities[severity] for severity in Severity},
        **{label.value: labels[label.value] for label in Label},
        Label.FIXED.value: fixed,
    }


_Said = tuple[str, str, CritiqueIssue]
"""Against which constraint, by whom, and what."""


@dataclass(frozen=True)
class _LedgerUpdate:
    """One taking-in of critiques."""

    iteration: int
    artifact: str
    previous: str

    def seen(self, known: Finding | None, named: str, said: Sequence[_Said]) -> Finding:
        """Returns a finding that is reported now, in the words of its worst report."""
        constraint, _, worst = min(said, key=lambda each: each[2].severity.rank)
        critics = tuple(dict.fromkeys(critic for _, critic, _ in said))
        now = Finding(
            id=named,
            constraint=constraint,
            rule=worst.rule_id,
            severity=worst.severity,
            quote=worst.evidence,
            location=worst.location,
            finding=worst.finding,
            first=self.iteration,
            last=self.iteration,
            flagged_by=critics,
            artifact=self._named,
            unverified=all(issue.unverified for _, _, issue in said),
        )
        aside = all(is_set_aside(issue) for _, _, issue in said)
        if known is not None and self.still_holds(known):
            return _joined(known, now, aside=aside, iteration=self.iteration)
        known = self.not_gone_after_all(known)
        label = self.label(known, now)
        status = FindingStatus.IGNORED if aside else FindingStatus.OPEN
        if known is not None:
            returns = known.returns + (label is Label.REGRESSED)
            now = replace(now, first=known.first, history=known.history, returns=returns)
        word = FindingStatus.IGNORED.value if aside else label.value
        return replace(now, status=status, label=label).with_history(self.iteration, word)

    def gone(self, known: Finding) -> Finding:
        """Returns a finding that nobody reports, though its constraint was read."""
        over = known.status in (FindingStatus.FIXED, FindingStatus.DISMISSED)
        if over or self.still_holds(known):
            return known
        fixed = replace(known, status=FindingStatus.FIXED, label=Label.FIXED, artifact=self._named)
        return fixed.with_history(self.iteration, Label.FIXED.value)

    def label(self, known: Finding | None, now: Finding) -> Label:
        """Returns what this reading says of a finding."""
        if known is not None:
            return Label.REGRESSED if known.status is FindingStatus.FIXED else Label.PERSISTING
        if now.omission or not self.previous:
            return Label.NEW
        brought_in = not self._before.contains(now.quote) and self._text.contains(now.quote)
        return Label.INTRODUCED if brought_in else Label.NEW

    def not_gone_after_all(self, known: Finding | None) -> Finding | None:
        """Returns a finding as it was before another reading of this very text missed it."""
        fixed_now = (self.iteration, Label.FIXED.value)
        if known is None or known.artifact != self._named or known.history[-1] != fixed_now:
            return known
        return replace(known, status=FindingStatus.OPEN, history=known.history[:-1])

    def still_holds(self, known: Finding) -> bool:
        """Tells whether it was reported about this very text, in this iteration."""
        same = (known.last, known.artifact) == (self.iteration, self._named)
        return same and known.status is not FindingStatus.FIXED

    @cached_property
    def _named(self) -> str:
        return text_digest(self.artifact)[:SHORT]

    @cached_property
    def _text(self) -> ArtifactText:
        return ArtifactText(self.artifact)

    @cached_property
    def _before(self) -> ArtifactText:
        return ArtifactText(self.previous)


def _joined(known: Finding, now: Finding, *, aside: bool, iteration: int) -> Finding:
    """Returns a finding that another reading of the same text reports as well."""
    worse = now if now.severity.rank < known.severity.rank else known
    critics = tuple(dict.fromkeys((*known.flagged_by, *now.flagged_by)))
    joined = replace(
        known,
        severity=worse.severity,
        flagged_by=critics,
        unverified=known.unverified and now.unverified,
    )
    if aside or known.status is FindingStatus.OPEN:
        return joined
    return replace(joined, status=FindingStatus.OPEN).with_history(iteration, known.label.value)


def _decided(known: Finding, pursuit: Pursuit, iteration: int) -> Finding:
    if pursuit is Pursuit.DISMISSED and known.status is FindingStatus.OPEN:
        return replace(known, status=FindingStatus.DISMISSED).with_history(
            iteration, FindingStatus.DISMISSED.value
        )
    if pursuit is Pursuit.PURSUING and known.status is FindingStatus.DISMISSED:
        return replace(known, status=FindingStatus.OPEN).with_history(iteration, known.label.value)
    return known


def _by_finding(
    critiques: Sequence[Critique], ids: Sequence[Sequence[str]]
) -> dict[str, list[_Said]]:
    found: dict[str, list[_Said]] = {}
    for critique, named in zip(critiques, ids, strict=True):
        for each, issue in zip(named, critique.issues, strict=True):
            said = (critique.constraint_id, critique.reviewer, issue)
            found.setdefault(each, []).append(said)
    return found


def _readers(critiques: Sequence[Critique]) -> Callable[[Finding], bool]:
    """Returns who can tell whether a finding was looked for.

    It was when somebody read its constraint; but a reading that came to nothing, by one who
    had reported it, leaves it as it was.
    """
    failed = {(c.constraint_id, c.reviewer) for c in critiques if c.overall is Overall.ERROR}
    read = {c.constraint_id for c in critiques if c.overall is not Overall.ERROR}

    def was_read(known: Finding) -> bool:
        silent = any((known.constraint, critic) in failed for critic in known.flagged_by)
        return known.constraint in read and not silent

    return was_read


def _labelled(critique: Critique, ids: Sequence[str], seen: Mapping[str, Finding]) -> Critique:
    issues = (
        replace(issue, finding_id=named, label=seen[named].label.value)
        for issue, named in zip(critique.issues, ids, strict=True)
    )
    return replace(critique, issues=tuple(issues))


def _fixed_in(known: Finding, iteration: int) -> bool:
    """Tells whether it was open, and is gone since this iteration."""
    told = [each for each in known.history if each[0] <= iteration]
    return told[-1:] == [(iteration, Label.FIXED.value)] and told[-2][1] != FindingStatus.IGNORED


def _first_word(known: Finding, iteration: int) -> str:
    """Returns the first label of an iteration: new, though it was seen again in it."""
    words = (word for when, word in known.history if when == iteration)
    return next((word for word in words if word not in _CLOSED), "")
