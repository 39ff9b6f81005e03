"""`signoff store` and `signoff backup`."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from signoff.app.runs.runs import back_up, move_runs, public_address
from signoff.core.amounts import count
from signoff.core.digest import SHORT
from signoff.surfaces.cli import options as cli
from signoff.surfaces.cli.output import Output, near

if TYPE_CHECKING:
    from signoff.app.runs.runs import MovedRun


VARIABLE = "SIGNOFF_DATABASE"


@click.group(cls=cli.Group)
def command() -> None:
    """Maintain the store of the runs.

    Examples:
      signoff store setup
      signoff store setup --print --role worker
      signoff store move release-notes --to postgresql://worker@host/runs
    """


@cli.command(group=command)
@click.argument("runs", nargs=-1, metavar="RUN...")
@click.option("--all", "everything", is_flag=True, help="Move all runs that are at rest.")
@click.option("--to", "address", required=True, metavar="FILE|URL", help="The other store.")
def move(runs: tuple[str, ...], everything: bool, address: str, out: Output) -> None:
    """Move runs to another store, with everything that belongs to them.

    Only runs that no process drives are moved; --all lists those that it leaves out. Each is
    verified by its digest in the other store before this one gives it up. If the move is
    interrupted, start it again: it continues where it stopped. This store remembers where a run
    went.

    Pending requests get new numbers in the other store, which are printed. The settings are not
    changed: to work with the other store, set `database:` or SIGNOFF_DATABASE to it.

    Examples:
      signoff store move release-notes --to postgresql://worker@host/runs
      signoff store move --all --to .signoff/signoff.db
    """
    from signoff.app.settings.project import absolute_address, open_database

    # Neither means nothing, and both could be read in two ways: moving is too much to guess about.
    if bool(runs) == everything:
        raise click.UsageError("name the runs to move, or pass --all")
    address = absolute_address(address, Path.cwd())
    with cli.open_here() as project, closing(open_database(address, Path.cwd())) as target:
        names = None if everything else runs
        report = partial(_report_moved, out)
        moved, running = move_runs(project, target, address, names, report)
        here, new = public_address(project.settings.database), public_address(address)
        in_variable = project.settings.values["database"].origin.endswith(VARIABLE)
    lines = [] if moved else ["there are no runs at rest, so nothing was moved"]
    if running:
        lines.append(f"not moved, because they are running: {', '.join(running)}")
    if moved:
        # The variable overrides the settings, so changing only those could have no effect.
        named = f"{VARIABLE} still names" if in_variable else "the settings still name"
        setting = f"set database: {new} in .signoff/config.yaml"
        either = f"set it to {new}, or unset it and {setting}"
        change = either if in_variable else f"{setting}, or {VARIABLE}"
        lines += [f"{named} {here}; to work with the moved runs,", change]
    data = {"moved": [asdict(each) for each in moved], "running": running}
    out.show({**data, "database": here, "moved_to": new}, *lines)


def _report_moved(out: Output, run: MovedRun) -> None:
    if out.as_json:
        return
    size = f"{count(run.commits, 'commit')}, {count(run.requests, 'request')}"
    out.line(f"moved {run.run}: {size}, digest {run.digest[:SHORT]}")
    if run.pending:
        out.line(f"  pending there: {', '.join(f'#{each}' for each in run.pending)}")


@cli.command(group=command)
@click.option("--print", "print_sql", is_flag=True, help="Print the SQL; change nothing.")
@click.option("--role", default="", metavar="ROLE",
              help="With --print: the role that gets rights on rows; by default the user in the "
              "database's URL.")  # fmt: skip
def setup(print_sql: bool, role: str, out: Output) -> None:
    """Create or upgrade the tables of a database server.

    The database is the one in the settings (`database:`) or in SIGNOFF_DATABASE. Before an upgrade,
    back it up and stop the workers of the older version.

    With --print, an administrator gets the SQL instead: it creates the tables and grants a role
    the right to read and change rows, and nothing else. The role must exist.

    Examples:
      signoff store setup
      signoff store setup --print --role worker | psql -v ON_ERROR_STOP=1 DATABASE
    """
    from signoff.app.settings.project import current_address, set_up, setup_sql

    address = current_address(Path.cwd(), os.environ)
    if print_sql:
        sql = setup_sql(address, role)
        out.show({"sql": sql}, sql.rstrip("\n"))
        return
    version = set_up(address)
    out.show({"schema": version}, f"the tables are ready (version {version})")


@cli.command()
@click.argument("file", type=click.Path(path_type=Path))
def backup_command(file: Path, out: Output) -> None:
    """Copy the database with all runs to FILE, even while runs are using it.

    The copy is checked before it gets its name. To restore it, put it in the place of
    .signoff/signoff.db while no run is active; the files of the runs are written again from it.

    Examples:
      signoff backup runs-2026-11-17.db
    """
    with cli.open_here() as project:
        made = back_up(project, file.absolute())
    size = f"{made.size / 1_000_000:.1f} MB"
    document = {"file": str(made.file), "runs": made.runs, "size": made.size}
    out.show(document, f"backup: {near(made.file)} ({count(made.runs, 'run')}, {size}, checked)")
