"""`signoff cancel`."""

from __future__ import annotations

import asyncio

import click

from signoff.app.runs import cancel, catch_up
from signoff.app.show import show
from signoff.cli import exits
from signoff.cli.options import CliCommand, open_here, output_options, run_argument
from signoff.cli.output import Output
from signoff.cli.summary import print_end
from signoff.core.outcome import Status


@click.command(cls=CliCommand)
@run_argument
@click.option("--why", default="", help="The reason, which is recorded.")
@output_options
def command(run: str | None, why: str, out: Output) -> int:
    """Cancel RUN (default: the latest run).

    If another process drives the run, this command waits for it to stop: when it returns,
    no program or call of the run is active.

    Examples:
      signoff cancel first-try --why "wrong input"
    """
    with open_here() as project:
        again = project.run(run).status is Status.CANCELLED
        name, status = asyncio.run(cancel(project, run, why))
        catch_up(project, name, out.warn)
        report = show(project, name)
    if out.as_json:
        out.json({"run": name, "status": status.value, "result": report.result})
    else:
        out.line(f"{'already ' if again else ''}{status.value}  {name}")
        print_end(report, out)
    return exits.OK if status is Status.CANCELLED else exits.ERROR
