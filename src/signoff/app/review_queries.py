"""Selects parts of a review's history: findings, changes, a version of the artifact."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from signoff.core.severity import Severity
from signoff.core.words import Label
from signoff.errors import UnknownName, UsageError
from signoff.review.finding import Finding
from signoff.review.history import ReviewHistory, Version


def select_findings(
    history: ReviewHistory,
    severities: Sequence[Severity],
    labels: Collection[Label],
    constraints: Sequence[str],
) -> list[Finding]:
    """Returns the findings that match every filter, the most severe first."""
    known = [*history.constraints, *(each.constraint for each in history.findings)]
    for name in constraints:
        if name not in known:
            raise UnknownName("constraint", name, dict.fromkeys(known))
    found = [
        each
        for each in history.findings
        if _matches(each.severity, severities)
        and _matches(each.became, labels)
        and _matches(each.constraint, constraints)
    ]
    return sorted(found, key=lambda each: (each.severity.rank, each.first, each.path))


def changes(
    history: ReviewHistory,
    run: str,
    number: int | None = None,
    first: int | None = None,
    last: int | None = None,
) -> list[tuple[Version, Version]]:
    """Returns pairs of versions: before and after each round's fixes, or two that rounds reviewed.

    `number` selects the fixes of one round; `first` or `last` select two versions.
    """
    if number is not None and (first is not None or last is not None):
        raise UsageError("choose either one round, or a first and a last one")
    for each in (number, first, last):
        if each is not None:
            _need_round(history, run, each)
    if first is not None or last is not None:
        return [_between(history, run, first, last)]
    numbers = [each.number for each in history.rounds if number in (None, each.number)]
    return [pair for each in numbers if (pair := history.fix_of(each)) is not None]


def artifact(history: ReviewHistory, run: str, number: int | None = None) -> Version:
    """Returns the version that a round reviewed, or the one that the run leaves."""
    if number is not None:
        _need_round(history, run, number)
    version = history.result if number is None else history.reviewed_in(number)
    if version is None:
        raise UsageError(f"run {run!r} has no version of the artifact yet")
    return version


def _between(
    history: ReviewHistory, run: str, first: int | None, last: int | None
) -> tuple[Version, Version]:
    versions = history.versions
    before = history.reviewed_in(first) if first is not None else versions[:1] and versions[0]
    after = history.reviewed_in(last) if last is not None else versions[:1] and versions[-1]
    if not before or not after:
        raise UsageError(f"run {run!r} has no version of the artifact yet")
    return before, after


def _need_round(history: ReviewHistory, run: str, number: int) -> None:
    if history.round(number) is None:
        known = [each.number for each in history.rounds]
        rounds = f"its rounds are {known[0]} to {known[-1]}" if known else "it has no rounds yet"
        raise UsageError(f"run {run!r} has no round {number}; {rounds}")


def _matches(value: Any, wanted: Collection[Any]) -> bool:
    return not wanted or value in wanted
