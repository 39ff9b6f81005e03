"""Selects parts of a review's history: findings, changes, a version of the artifact."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from signoff.app.history import record_of
from signoff.app.project import Project
from signoff.app.runs import list_runs
from signoff.core.severity import Severity
from signoff.core.words import Label
from signoff.errors import UnknownName, UsageError
from signoff.review.finding import Finding
from signoff.review.history import ReviewHistory, Version
from signoff.runtime.store_port import RunRow

MOST_NAMED = 10
"""Findings that the beginning of an id can mean, and that the error names."""


def select_findings(
    history: ReviewHistory,
    severities: Sequence[Severity],
    labels: Collection[Label],
    constraints: Sequence[str],
) -> list[Finding]:
    """Returns the findings that match every filter, in the order of a list."""
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
    return history.listed(found)


def find_finding(
    project: Project, name: str, run: str | None = None
) -> tuple[RunRow, ReviewHistory, Finding]:
    """Returns a finding by its id or the beginning of it, with the review that has it.

    Of several runs it is the newest that knows it; `run` names one.
    """
    latest: dict[str, None] = {}
    for row in [project.run(run)] if run is not None else list_runs(project):
        history = record_of(project, row).review()
        if history is None:
            continue
        ids = [each.id for each in history.findings]
        latest = latest or dict.fromkeys(ids)
        exact = [name] if name in ids else [each for each in ids if each.startswith(name)]
        if len(exact) > 1:
            raise UsageError(f"{name!r} can mean several findings: {', '.join(exact[:MOST_NAMED])}")
        if exact:
            found = history.findings[ids.index(exact[0])]
            return row, history, found
    raise UnknownName("finding", name, latest)


def find_run_or_finding(project: Project, name: str) -> tuple[RunRow, Finding | None]:
    """Returns a run by its name, or a finding by its id with the newest run that knows it."""
    try:
        return project.run(name), None
    except UnknownName as error:
        try:
            row, _, finding = find_finding(project, name)
        except UnknownName:
            raise error from None
        return row, finding


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
