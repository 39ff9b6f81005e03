"""`signoff runs`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from signoff.cli.options import debug_option, json_option, open_here, output
from signoff.cli.output import STYLES
from signoff.cli.text import ago, ahead

if TYPE_CHECKING:
    from signoff.runtime.store_port import RunRow

ALL = -1
"""The limit that lists all runs."""

_EPILOG = """\b
Examples:
  signoff runs
  signoff runs --status waiting --status parked
  signoff runs -n 100 --json
"""


def _check_limit(_context: click.Context, _option: click.Parameter, limit: int) -> int:
    if limit < 1 and limit != ALL:
        raise click.BadParameter(
            f"{limit} is not a number of runs; give 1 or more, or {ALL} for all"
        )
    return limit


@click.command(epilog=_EPILOG)
@click.option(
    "--status", multiple=True, metavar="STATUS", help="Only runs with this status. Repeatable."
)
@click.option(
    "-n",
    "--limit",
    default=20,
    show_default=True,
    callback=_check_limit,
    help="The maximum number; -1 for all.",
)
@json_option
@debug_option
def command(status: tuple[str, ...], limit: int, as_json: bool) -> None:
    """List runs, newest first."""
    from signoff.app.runs import list_runs, run_to_json

    out = output(as_json)
    with open_here() as project:
        rows = list_runs(project, status=status, limit=limit)
    if as_json:
        out.json([run_to_json(row) for row in rows])
        return
    if not rows:
        out.line("no runs" if not status else f"no runs with status {', '.join(status)}")
        return
    now = time.time()
    cells = [
        (
            row.name,
            row.status.value,
            row.workflow,
            row.step or "-",
            row.iteration,
            ago(row.updated_at, now),
            _reason(row, now),
        )
        for row in rows
    ]
    columns = ("RUN", "STATUS", "WORKFLOW", "STEP", "ITER", "CHANGED", "REASON")
    out.table(columns, cells, {"STATUS": STYLES}, spare=("WORKFLOW", "ITER", "CHANGED"))


def _reason(row: RunRow, now: float) -> str:
    """Returns the reason for a run's status; of a parked run, first when it is due."""
    from signoff.core.outcome import Status

    why = row.reason
    if row.status is not Status.PARKED or row.due_at is None:
        return why
    return f"{ahead(row.due_at, now)}{why and f': {why}'}"
