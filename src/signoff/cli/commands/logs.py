"""`signoff logs`."""

from __future__ import annotations

import time
from collections.abc import Iterable

import click

from signoff.app.runs import catch_up
from signoff.app.show import afterwards, logs
from signoff.cli.options import CliCommand, open_here, output_options, run_argument
from signoff.cli.output import Output
from signoff.cli.text import moment
from signoff.core.events import to_json
from signoff.runtime.narration import LogLine, Weight


@click.command(cls=CliCommand)
@run_argument
@click.option("-f", "--follow", is_flag=True, help="Follow the run.")
@click.option("-v", "--verbose", is_flag=True, help="Include details such as every call.")
@output_options
def command(run: str | None, follow: bool, out: Output) -> None:
    """Show the log of RUN (default: the latest run).

    With --json, prints an array of events; with -f too, one event per line.

    Examples:
      signoff logs                 the latest run
      signoff logs -f first-try    follow it until it stops or waits
      signoff logs --json          all events in full
    """
    with open_here() as project:
        run = project.run(run).name
        catch_up(project, run, out.warn, repair=False)
        sleep = time.sleep if follow else None
        entries = logs(project, run, sleep=sleep)
        if not out.as_json:
            for entry in entries:
                _print(entry.lines, out)
            _print(afterwards(project, run), out)
            return
        events = ({"seq": entry.seq, **to_json(entry.event)} for entry in entries)
        if not follow:
            out.json(list(events))
            return
        for event in events:
            out.json_line(event)
        # Stdout is for events only.
        for line in afterwards(project, run):
            out.note(line.text)


def _print(lines: Iterable[LogLine], out: Output) -> None:
    for line in lines:
        if out.verbose or line.weight is not Weight.DETAIL:
            style = "red" if line.weight is Weight.TROUBLE else ""
            out.line(f"{moment(line.at)}  {line.text}", style=style)
