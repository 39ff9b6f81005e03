"""`signoff cancel`."""

from __future__ import annotations

import asyncio

import click

from signoff.cli import exits
from signoff.cli.options import debug_option, json_option, open_here, output, run_argument

_EPILOG = """\b
Examples:
  signoff cancel first-try --why "wrong input"
"""


@click.command(epilog=_EPILOG)
@run_argument
@click.option("--why", default="", help="The reason, which is recorded.")
@json_option
@debug_option
def command(run: str | None, why: str, as_json: bool) -> int:
    """Cancel RUN (default: the latest run).

    If another process drives the run, this command waits for it to stop: when it returns,
    nothing of the run is active any more.
    """
    from signoff.app.run_files import catch_up
    from signoff.app.runs import cancel
    from signoff.core.outcome import Status

    out = output(as_json)
    with open_here() as project:
        name, status = asyncio.run(cancel(project, run, why))
        catch_up(project, name, out.warn)
    if as_json:
        out.json({"run": name, "status": status.value})
    else:
        out.line(f"{status.value}  {name}")
    return exits.OK if status is Status.CANCELLED else exits.ERROR
