"""`signoff findings`."""

from __future__ import annotations

import click

from signoff.app.history import need_review
from signoff.app.review_queries import select_findings
from signoff.cli.options import CliCommand, open_here, output_options, run_argument
from signoff.cli.output import Output
from signoff.cli.review_lines import finding_lines, totals
from signoff.core.severity import Severity
from signoff.core.words import read_labels
from signoff.errors import UnknownName
from signoff.review.history import finding_to_json


@click.command(cls=CliCommand)
@run_argument
@click.option("--severity", "severities", multiple=True, metavar="NAME",
              help="Only findings of this severity. Repeatable.")  # fmt: skip
@click.option("--status", "statuses", multiple=True, metavar="NAME",
              help="Only open findings, or those that are new, still_open, back, "
              "caused_by_fix, fixed, dismissed or ignored. Repeatable.")  # fmt: skip
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
      signoff findings --json | jq '.[] | select(.status == "back") | .path'
    """
    with open_here() as project:
        _, history = need_review(project, run)
    found = select_findings(
        history, [*map(_severity, severities)], read_labels(statuses), constraints
    )
    if out.as_json:
        out.json([finding_to_json(history, each) for each in found])
        return
    for finding in found:
        for text, style in finding_lines(history, finding):
            out.prose(text, style, hang="    ")
    out.line(totals(found))


def _severity(name: str) -> Severity:
    found = Severity.named(name)
    if found is None:
        raise UnknownName("severity", name, [each.value for each in Severity])
    return found
