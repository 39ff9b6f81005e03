"""`signoff findings`."""

from __future__ import annotations

import click

from signoff.app.history import find_run_or_finding, need_review, select_findings
from signoff.cli.options import CliCommand, complete_run, open_here, output_options
from signoff.cli.output import Output
from signoff.cli.review_lines import finding_lines, totals
from signoff.core.severity import Severity
from signoff.core.words import read_labels
from signoff.errors import UnknownName
from signoff.review.finding import group_equal
from signoff.review.history import finding_to_json


@click.command(cls=CliCommand)
@click.argument("run", metavar="[RUN|FINDING]", required=False, shell_complete=complete_run)
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

    With the id of a FINDING, or the beginning of it, show that one; of several runs that know
    it, in the newest.

    Examples:
      signoff findings                        every finding of the latest run
      signoff findings --status open
      signoff findings 3fa9c0de11b2           one finding, of any run
      signoff findings first-try --severity critical --severity high
      signoff findings --json | jq '.[] | select(.status == "back") | .path'
    """
    with open_here() as project:
        row, one = find_run_or_finding(project, run) if run is not None else (None, None)
        row, history = need_review(project, row.name if row is not None else None)
    found = select_findings(
        history, [*map(_severity, severities)], read_labels(statuses), constraints
    )
    if one is not None:
        found = [each for each in found if each.id == one.id]
    if out.as_json:
        which = {"run": row.name} if one is not None else {}
        out.json([{**finding_to_json(history, each), **which} for each in found])
        return
    if one is not None:
        out.line(f"run {row.name}")
    for group in group_equal(found):
        for text, style in finding_lines(history, group):
            out.prose(text, style, hang="    ")
    out.line(totals(found))


def _severity(name: str) -> Severity:
    found = Severity.named(name)
    if found is None:
        raise UnknownName("severity", name, [each.value for each in Severity])
    return found
