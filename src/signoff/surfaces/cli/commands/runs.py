"""`signoff runs`."""

from __future__ import annotations

import time

import click

from signoff.app.json_documents import run_info
from signoff.app.runs import runs
from signoff.core.amounts import count
from signoff.core.outcome import Status
from signoff.runtime.store_port import RunRow
from signoff.surfaces.cli import options as cli
from signoff.surfaces.cli.output import STYLES, Output, ago, ahead, clean, has_keyboard

SHOWN_NAMES = 8
"""Names of runs that a question lists."""

ALL = -1
"""The limit that lists all runs."""

COLUMNS = ("RUN", "STATUS", "WORKFLOW", "STEP", "ROUND", "CHANGED", "REASON")


def _check_limit(_context: click.Context, _option: click.Parameter, limit: int) -> int:
    if limit < 1 and limit != ALL:
        raise click.BadParameter(
            f"{limit} is not a number of runs; give 1 or more, or {ALL} for all"
        )
    return limit


@cli.command()
@click.option("--status", multiple=True, metavar="STATUS",
              help="Only runs with this status. Repeatable.")  # fmt: skip
@click.option("-n", "--limit", default=20, show_default=True, callback=_check_limit,
              help="The maximum number; -1 for all.")  # fmt: skip
@click.option("--delete", "names", multiple=True, metavar="NAME", shell_complete=cli.complete_run,
              help="Delete this run with its files. Repeatable.")  # fmt: skip
@click.option("--prune", "age", metavar="AGE",
              help="Delete the runs that ended longer ago than AGE: 12h, 30d, 8w.")  # fmt: skip
@click.option("--yes", is_flag=True, help="Delete without asking.")
def command(
    status: tuple[str, ...],
    limit: int,
    names: tuple[str, ...],
    age: str | None,
    yes: bool,
    out: Output,
) -> None:
    """List runs, newest first; or delete some.

    A run that is running is never deleted. --prune leaves runs that can be resumed, such as
    waiting ones.

    Examples:
      signoff runs
      signoff runs --status waiting --status parked
      signoff runs -n 100 --json
      signoff runs --delete first-try
      signoff runs --prune 30d --yes
    """
    if names or age is not None:
        _delete(names, age, yes=yes, out=out)
        return
    with cli.open_here() as project:
        rows = runs.list_runs(project, status=status, limit=limit)
        answered = runs.answered_runs(project)
    documents = [{**run_info(row), "answered": row.name in answered} for row in rows]
    now = time.time()
    cells = [_cells(row, now, answered=row.name in answered) for row in rows]
    none = f"no runs with status {', '.join(status)}" if status else "no runs"
    spare = ("WORKFLOW", "ROUND", "CHANGED")
    out.listing(documents, COLUMNS, cells, none, styles={"STATUS": STYLES}, spare=spare)


def _delete(names: tuple[str, ...], age: str | None, *, yes: bool, out: Output) -> None:
    """Deletes runs once the user has confirmed it."""

    if names and age is not None:
        raise click.UsageError("use either --delete or --prune")
    with cli.open_here() as project:
        rows = runs.named_runs(project, names) if names else runs.ended_runs(project, age or "")
        if rows and not yes:
            _confirm(rows, out)
        runs.delete_runs(project, rows)
    lines = [f"deleted  {row.name}" for row in rows] or [f"no run ended longer than {age} ago"]
    out.show({"deleted": [row.name for row in rows]}, *lines)


def _confirm(rows: list[RunRow], out: Output) -> None:
    shown = ", ".join(row.name for row in rows[:SHOWN_NAMES])
    more = f" and {len(rows) - SHOWN_NAMES} more" if len(rows) > SHOWN_NAMES else ""
    what = f"{count(len(rows), 'run')} with all files ({shown}{more})"
    if out.as_json or not has_keyboard():
        raise click.UsageError(f"this deletes {what}; to do that, add --yes")
    if not click.confirm(clean(f"Delete {what}?"), err=True):
        raise click.Abort


def _cells(row: RunRow, now: float, *, answered: bool) -> tuple[object, ...]:
    changed, reason = ago(row.updated_at, now), row.reason
    if answered and row.status is Status.WAITING:
        reason = f"answered, not resumed yet: signoff resume {row.name}"
    if row.status is Status.PARKED and row.due_at is not None:
        # When it is due is the first thing to know about a parked run.
        reason = f"{ahead(row.due_at, now)}{reason and f': {reason}'}"
    step = row.step or "-"
    return row.name, row.status.value, row.workflow, step, row.iteration, changed, reason
