"""`signoff profile status`, `sessions` and `cancel`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from signoff.cli.options import (
    CliCommand,
    open_here,
    output_options,
    project_dir_option,
)
from signoff.cli.output import Output
from signoff.errors import UnknownName
from signoff.profiles.commands.project import find_session, is_session, session_argument
from signoff.profiles.phases import WorkflowStatus

if TYPE_CHECKING:
    from signoff.runtime.store_port import RunRow

ALL = "all"


@click.command(cls=CliCommand)
@session_argument
@project_dir_option
@output_options
def status(session: str | None, out: Output) -> None:
    """Show where a session is and what it waits for.

    SESSION is the latest one by default.

    Examples:
      signoff profile status
      signoff profile status first-try --json
    """
    from signoff.profiles.commands.session_view import print_session, view_session

    with open_here() as project:
        print_session(view_session(project, find_session(project, session)), out)


@click.command(cls=CliCommand)
@click.option("--status", "wanted", default=ALL, metavar="STATUS",
              help=f"Only sessions with it: {', '.join(WorkflowStatus)} or {ALL}.")  # fmt: skip
@click.option("--profile", "profile_name", metavar="NAME", help="Only sessions of this profile.")
@click.option("-n", "--limit", default=50, show_default=True, type=click.IntRange(min=1),
              help="The maximum number.")  # fmt: skip
@project_dir_option
@output_options
def sessions(wanted: str, profile_name: str | None, limit: int, out: Output) -> None:
    """List sessions, newest first.

    Examples:
      signoff profile sessions --status in_progress
      signoff profile sessions --profile python-module --json
    """
    from signoff.app.runs import current_row

    statuses = [status.value for status in WorkflowStatus]
    if wanted not in (ALL, *statuses):
        raise UnknownName("status", wanted, [*statuses, ALL])
    listed: list[dict[str, Any]] = []
    with open_here() as project:
        for row in project.store.rows(limit=-1):
            if profile_name not in (None, row.workflow) or not is_session(project, row):
                continue
            line = _session_to_json(current_row(project, row))
            if wanted in (ALL, line["status"]):
                listed.append(line)
            if len(listed) == limit:
                break
    if out.as_json:
        out.json(listed)
    elif listed:
        columns = ("run", "profile", "phase", "stage", "status", "current_iteration", "reason")
        rows = [[line[name] or "" for name in columns] for line in listed]
        headings = ("SESSION", "PROFILE", "PHASE", "STAGE", "STATUS", "ROUND", "REASON")
        out.table(headings, rows, spare=("PROFILE", "ROUND"))
    else:
        out.line("no sessions")


@click.command(cls=CliCommand)
@session_argument
@click.option("--why", default="", help="The reason, which is recorded.")
@project_dir_option
@output_options
def cancel(session: str | None, why: str, out: Output) -> int:
    """Cancel a session; its files stay.

    SESSION is the latest one by default.

    Examples:
      signoff profile cancel first-try --why "wrong table"
    """
    import asyncio

    from signoff.app.run_files import catch_up
    from signoff.app.runs import cancel as use_case
    from signoff.cli import exits
    from signoff.core.outcome import Status
    from signoff.profiles.commands.session_view import print_session, view_session

    with open_here() as project:
        name, ended = asyncio.run(use_case(project, find_session(project, session).name, why))
        catch_up(project, name, out.warn)
        print_session(view_session(project, project.run(name)), out)
    return exits.OK if ended is Status.CANCELLED else exits.ERROR


def _session_to_json(row: RunRow) -> dict[str, Any]:
    from signoff.profiles.view import position

    phase, stage, status = position(row.status, row.step)
    return {
        "run": row.name,
        "profile": row.workflow,
        "phase": phase.value,
        "stage": stage.value if stage is not None else None,
        "status": status.value,
        "current_iteration": row.iteration,
        "reason": row.reason,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }
