"""`signoff next`."""

from __future__ import annotations

import click

from signoff.app.external_work import next_work
from signoff.cli.external_work import drive_external, status_exit_code
from signoff.cli.options import (
    CliCommand,
    open_here,
    output_options,
    project_dir_option,
    run_argument,
)
from signoff.cli.output import Output


@click.command(cls=CliCommand)
@run_argument
@click.option("--item", metavar="ITEM",
              help="Show only the work with this number, or for this item.")  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="Show progress.")
@project_dir_option
@output_options
def command(run: str | None, item: str | None, out: Output) -> int:
    """Show the open work of RUN and the conditions it must meet.

    For external workers, in a run started with `run --pull`. A step with several items has
    several work items, each with a number; they can be done in any order and by several
    workers. A stopped run is resumed until there is work.

    Examples:
      signoff run book.py --pull --name book
      signoff next book
      signoff next book --item 7 --json
      signoff submit book --item 7 --result '{"decision": "approved"}'

    Exit codes: 0 there is work, or the run is completed; 10 waiting for a human; otherwise
    as for `run`.
    """
    with open_here(drives=True) as project:
        status = drive_external(
            out,
            lambda observers: next_work(project, run, observers=observers, warn=out.warn),
            which=item,
        )
    return status_exit_code(status)
