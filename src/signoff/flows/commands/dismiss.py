"""`signoff dismiss`: records a decision about a finding that later runs respect."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from typing import TYPE_CHECKING

import click

from signoff.cli.options import CliCommand, complete_run, open_here, output_options
from signoff.cli.output import Output
from signoff.errors import UnknownName, UsageError

if TYPE_CHECKING:
    from signoff.review.findings import Finding


@click.command(cls=CliCommand)
@click.argument("finding")
@click.option("--why", required=True, metavar="TEXT", help="The reason, which is recorded.")
@click.option("--until", metavar="DATE", help="The last day on which it holds, as 2026-12-31.")
@click.option("--run", "run", metavar="RUN", shell_complete=complete_run,
              help="The run that found it; the latest one by default.")  # fmt: skip
@output_options
def command(finding: str, why: str, until: str | None, run: str | None, out: Output) -> None:
    """Dismiss a finding in later runs, while its passage is unchanged.

    FINDING is its id, or the beginning of it. The decision is added to .signoff/decisions.yaml,
    which you commit; it replaces an earlier one about the same finding.

    Examples:
      signoff dismiss 0a99eb9001c4 --why "It is a slogan."
      signoff dismiss 0a99 --why "Fixed with the new parser." --until 2026-12-31
    """
    from signoff.app.answering import current_user
    from signoff.app.show import show
    from signoff.flows.decision_file import add_decisions
    from signoff.flows.state import FlowState
    from signoff.review.lasting_decision import LastingDecision

    if not why.strip():
        raise UsageError("write the reason: --why TEXT")
    today = date.today()  # noqa: DTZ011  # the user's own calendar
    if until is not None:
        _check_day(until, today)
    with open_here() as project:
        details = show(project, run)
        found = _find(FlowState(details.state).ledger.findings.values(), finding)
        decision = LastingDecision.about_finding(
            found, why, by=current_user(), on=today.isoformat(), until=until or ""
        )
        path = add_decisions(project.home.path, [decision], replace=True)
    if out.as_json:
        out.json({"file": str(path), "decision": decision.to_json()})
    else:
        out.line(f"dismissed {found.id} in later runs; commit {path}")


def _find(findings: Collection[Finding], name: str) -> Finding:
    matching = [each for each in findings if each.id.startswith(name)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        ids = ", ".join(each.id for each in matching)
        raise UsageError(f"{name!r} can mean several findings: {ids}")
    raise UnknownName("finding", name, [each.id for each in findings])


def _check_day(text: str, today: date) -> None:
    try:
        day = date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"--until {text!r} is not a date; write it as 2026-12-31") from error
    if day < today:
        raise UsageError(f"--until {text} has passed, so the decision would have no effect")
