"""`signoff runs`."""

from __future__ import annotations

import time

import click

from signoff.app.runs import list_runs, run_to_json
from signoff.cli.options import CliCommand, open_here, output_options
from signoff.cli.output import STYLES, Output
from signoff.cli.text import ago, ahead
from signoff.core.outcome import Status
from signoff.runtime.store_port import RunRow

ALL = -1
"""The limit that lists all runs."""

COLUMNS = ("RUN", "STATUS", "WORKFLOW", "STEP", "ROUND", "CHANGED", "REASON")


def _check_limit(_context: click.Context, _option: click.Parameter, limit: int) -> int:
    if limit < 1 and limit != ALL:
        raise click.BadParameter(
            f"{limit} is not a number of runs; give 1 or more, or {ALL} for all"
        )
    return limit


@click.command(cls=CliCommand)
@click.option("--status", multiple=True, metavar="STATUS",
              help="Only runs with this status. Repeatable.")  # fmt: skip
@click.option("-n", "--limit", default=20, show_default=True, callback=_check_limit,
              help="The maximum number; -1 for all.")  # fmt: skip
@output_options
def command(status: tuple[str, ...], limit: int, out: Output) -> None:
    """List runs, newest first.

    Examples:
      signoff runs
      signoff runs --status waiting --status parked
      signoff runs -n 100 --json
    """
    with open_here() as project:
        rows = list_runs(project, status=status, limit=limit)
    if out.as_json:
        out.json([run_to_json(row) for row in rows])
    elif rows:
        now = time.time()
        cells = [_cells(row, now) for row in rows]
        out.table(COLUMNS, cells, {"STATUS": STYLES}, spare=("WORKFLOW", "ROUND", "CHANGED"))
    else:
        out.line("no runs" if not status else f"no runs with status {', '.join(status)}")


def _cells(row: RunRow, now: float) -> tuple[object, ...]:
    changed, reason = ago(row.updated_at, now), row.reason
    if row.status is Status.PARKED and row.due_at is not None:
        # When it is due is the first thing to know about a parked run.
        reason = f"{ahead(row.due_at, now)}{reason and f': {reason}'}"
    step = row.step or "-"
    return row.name, row.status.value, row.workflow, step, row.iteration, changed, reason
