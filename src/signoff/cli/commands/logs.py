"""`signoff logs`."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from signoff.cli.options import debug_option, json_option, open_here, output, run_argument

if TYPE_CHECKING:
    from signoff.cli.output import Output
    from signoff.runtime.narration import LogLine

_EPILOG = """\b
Examples:
  signoff logs                 the latest run
  signoff logs -f first-try    follow it until it stops or waits
  signoff logs --json          all events in full
"""


@click.command(epilog=_EPILOG)
@run_argument
@click.option("-f", "--follow", is_flag=True, help="Follow the run.")
@click.option("-v", "--verbose", is_flag=True, help="Include details such as every call.")
@json_option
@debug_option
def command(run: str | None, follow: bool, verbose: bool, as_json: bool) -> None:
    """Show the log of RUN (default: the latest run).

    With --json, prints an array of events; with -f too, one event per line.
    """
    from signoff.app import logs as use_case
    from signoff.app.run_files import catch_up
    from signoff.core.events import to_json

    out = output(as_json, verbose=verbose)
    with open_here() as project:
        run = project.run(run).name
        catch_up(project, run, out.warn)
        sleep = time.sleep if follow else None
        entries = use_case.logs(project, run, whole=as_json, sleep=sleep)
        if as_json and not follow:
            out.json([{"seq": entry.seq, **to_json(entry.event)} for entry in entries])
            return
        for entry in entries:
            if as_json:
                out.json_line({"seq": entry.seq, **to_json(entry.event)})
                continue
            _print(entry.lines, out)
        if not as_json:
            _print(use_case.afterwards(project, run), out)
            return
        # With --json, stdout is for events only.
        for line in use_case.afterwards(project, run):
            out.note(line.text)


def _print(lines: Iterable[LogLine], out: Output) -> None:
    from signoff.cli.text import moment
    from signoff.runtime.narration import Weight

    for line in lines:
        if out.verbose or line.weight is not Weight.DETAIL:
            style = "red" if line.weight is Weight.TROUBLE else ""
            out.line(f"{moment(line.at)}  {line.text}", style=style)
