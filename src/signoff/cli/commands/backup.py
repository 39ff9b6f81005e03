"""`signoff backup`."""

from __future__ import annotations

from pathlib import Path

import click

from signoff.app.runs import back_up
from signoff.cli.options import CliCommand, open_here, output_options
from signoff.cli.output import Output
from signoff.cli.text import near
from signoff.runtime.amounts import count


@click.command(cls=CliCommand)
@click.argument("file", type=click.Path(path_type=Path))
@output_options
def command(file: Path, out: Output) -> None:
    """Copy the database with all runs to FILE, even while runs are using it.

    The copy is checked before it gets its name. To restore it, put it in the place of
    .signoff/signoff.db while no run is active; the files of the runs are written again from it.

    Examples:
      signoff backup runs-2026-11-17.db
    """
    with open_here() as project:
        made = back_up(project, file.absolute())
    if out.as_json:
        out.json({"file": str(made.file), "runs": made.runs, "size": made.size})
        return
    size = f"{made.size / 1_000_000:.1f} MB"
    out.line(f"backup: {near(made.file)} ({count(made.runs, 'run')}, {size}, checked)")
