"""`signoff dismiss`: records a decision about a finding that later runs respect."""

from __future__ import annotations

from datetime import date

import click

from signoff.app.answering import current_user
from signoff.app.history import find_finding
from signoff.cli.options import CliCommand, complete_run, open_here, output_options
from signoff.cli.output import Output
from signoff.errors import UsageError
from signoff.flows.decision_file import add_decisions
from signoff.review.lasting_decision import LastingDecision


@click.command(cls=CliCommand)
@click.argument("finding")
@click.option("--why", required=True, metavar="TEXT", help="The reason, which is recorded.")
@click.option(
    "--all-like", is_flag=True, help="Dismiss everything that its rule reports, now and later."
)
@click.option("--in", "files", metavar="GLOB", help="With --all-like, only in these files.")
@click.option("--until", metavar="DATE", help="The last day on which it holds, as 2026-12-31.")
@click.option("--run", "run", metavar="RUN", shell_complete=complete_run,
              help="The run that found it; the latest one that knows it by default.")  # fmt: skip
@output_options
def command(
    finding: str,
    why: str,
    all_like: bool,
    files: str | None,
    until: str | None,
    run: str | None,
    out: Output,
) -> None:
    """Dismiss a finding in later runs, while its passage is unchanged.

    FINDING is its id, or the beginning of it. The decision is added to .signoff/decisions.yaml,
    which you commit; it replaces an earlier one about the same finding.

    Examples:
      signoff dismiss 0a99eb9001c4 --why "It is a slogan."
      signoff dismiss 0a99 --all-like --in "tests/*" --why "Tests may do that."
      signoff dismiss 0a99 --why "Fixed with the new parser." --until 2026-12-31
    """

    if not why.strip():
        raise UsageError("write the reason: --why TEXT")
    if files is not None and not all_like:
        raise UsageError("--in GLOB needs --all-like: a finding is in one file")
    today = date.today()  # noqa: DTZ011  # the user's own calendar
    if until is not None:
        _check_day(until, today)
    with open_here() as project:
        row, _, found = find_finding(project, finding, run)
        if all_like and not found.rule:
            raise UsageError(f"finding {found.id} names no rule; dismiss it without --all-like")
        record = {"by": current_user(), "on": today.isoformat(), "until": until or ""}
        decision = (
            LastingDecision.about_rule(found, why, files or "", **record)
            if all_like
            else LastingDecision.about_finding(found, why, **record)
        )
        path = add_decisions(project.home.path, [decision], replace=True)
    if out.as_json:
        out.json({"file": str(path), "run": row.name, "decision": decision.to_json()})
    else:
        like = f"everything like {found.id}" if all_like else found.id
        out.line(f"dismissed {like} of run {row.name} in later runs; commit {path}")


def _check_day(text: str, today: date) -> None:
    try:
        day = date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"--until {text!r} is not a date; write it as 2026-12-31") from error
    if day < today:
        raise UsageError(f"--until {text} has passed, so the decision would have no effect")
