"""`signoff findings`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import click

from signoff.app.history import need_review
from signoff.cli.options import CliCommand, open_here, output_options, run_argument
from signoff.cli.output import Output
from signoff.cli.review_lines import finding_lines, totals
from signoff.core.severity import Severity
from signoff.errors import UnknownName
from signoff.review.finding import Finding, FindingStatus
from signoff.review.history import ReviewHistory, finding_to_json


@click.command(cls=CliCommand)
@run_argument
@click.option("--severity", "severities", multiple=True, metavar="NAME",
              help="Only findings of this severity. Repeatable.")  # fmt: skip
@click.option("--status", "statuses", multiple=True, metavar="NAME",
              help="Only open, fixed, dismissed or ignored findings. Repeatable.")  # fmt: skip
@click.option("--constraint", "constraints", multiple=True, metavar="ID",
              help="Only findings of this constraint. Repeatable.")  # fmt: skip
@output_options
def command(
    run: str | None,
    severities: tuple[str, ...],
    statuses: tuple[str, ...],
    constraints: tuple[str, ...],
    out: Output,
) -> None:
    """List the findings of RUN, and what became of them (default: the latest run).

    Examples:
      signoff findings                        every finding of the latest run
      signoff findings --status open
      signoff findings first-try --severity critical --severity high
      signoff findings --json | jq '.[] | select(.status == "open") | .path'
    """
    with open_here() as project:
        _, history = need_review(project, run)
    found = _selected(history, severities, statuses, constraints)
    if out.as_json:
        out.json([finding_to_json(history, each) for each in found])
        return
    for finding in found:
        for text, style in finding_lines(history, finding):
            out.prose(text, style, hang="    ")
    out.line(totals(found))


def _selected(
    history: ReviewHistory,
    severities: Sequence[str],
    statuses: Sequence[str],
    constraints: Sequence[str],
) -> list[Finding]:
    """Returns the findings that match every filter, the most severe first."""
    worst = {_severity(name) for name in severities}
    states = {
        _one_of("status", name.lower(), [each.value for each in FindingStatus]) for name in statuses
    }
    known = [*history.constraints, *(each.constraint for each in history.findings)]
    names = {_one_of("constraint", name, list(dict.fromkeys(known))) for name in constraints}
    found = [
        each
        for each in history.findings
        if _matches(each.severity, worst)
        and _matches(each.status.value, states)
        and _matches(each.constraint, names)
    ]
    return sorted(found, key=lambda each: (each.severity.rank, each.first, each.path))


def _matches(value: Any, wanted: Collection[Any]) -> bool:
    return not wanted or value in wanted


def _severity(name: str) -> Severity:
    found = Severity.named(name)
    if found is None:
        raise UnknownName("severity", name, [each.value for each in Severity])
    return found


def _one_of(kind: str, name: str, names: Sequence[str]) -> str:
    if name not in names:
        raise UnknownName(kind, name, names)
    return name
