"""`signoff export`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from signoff import plugins
from signoff.app.export import export, send_trace
from signoff.cli.options import CliCommand, complete_run, debug_option, open_here, output
from signoff.cli.text import clean
from signoff.documents.regular_files import replace_private
from signoff.errors import ConfigError


class ExportCommand(CliCommand):
    """Lists the formats in its help; only then are they, and installed packages, looked up."""

    @property
    def help(self) -> str:
        """The text of `--help`, with the formats that are installed."""
        names = sorted(plugins.export_paths())
        width = max(map(len, names))
        lines = [f"  {name:{width}}  {_help_of(name)}" for name in names]
        return "\n".join([self._text, "", "\b", "Formats:", *lines])

    @help.setter  # noqa: A003  # click calls it so
    def help(self, text: str) -> None:
        self._text = text


def _help_of(name: str) -> str:
    try:
        found = plugins.export(name)
    except ConfigError as error:
        # A broken package must not hide the other formats.
        return f"not available: {error}"
    return found.help if found is not None else ""


@click.command(cls=ExportCommand)
@click.argument("format_name", metavar="FORMAT")
@click.argument("run", required=False, shell_complete=complete_run)
@click.option("-o", "--output", "file", type=click.Path(dir_okay=False, path_type=Path),
              metavar="FILE", help="Write to FILE instead of stdout.")  # fmt: skip
@click.option("--send", is_flag=True,
              help="Send a trace to the collector at OTEL_EXPORTER_OTLP_ENDPOINT.")  # fmt: skip
@debug_option
def command(format_name: str, run: str | None, file: Path | None, send: bool) -> None:
    """Export RUN (default: the latest run) as FORMAT.

    The same run gives the same bytes, whenever and wherever it is exported.

    Examples:
      signoff export json first-try -o run.json
      signoff export otel first-try --send    to the collector on this machine
    """
    if send and (format_name != "otel" or file is not None):
        raise click.UsageError("--send is for `export otel`, without -o")
    with open_here() as project:
        if send:
            output().note(f"sent {send_trace(project, run)} spans")
            return
        parts = export(project, format_name, run)
        if file is not None:
            replace_private(file, parts)
            return
        terminal = output().pretty
        for part in parts:
            sys.stdout.write(clean(part) if terminal else part)
