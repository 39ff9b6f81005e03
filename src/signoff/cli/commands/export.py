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


def _help() -> str:
    """Returns the text of `--help`, with the formats that are installed."""
    formats = [(name, plugins.export(name)) for name in plugins.export_paths()]
    width = max(len(name) for name, _ in formats)
    lines = [f"  {name:{width}}  {each.help}" for name, each in sorted(formats) if each]
    return "\n".join(
        [
            "Export RUN (default: the latest run) as FORMAT.",
            "",
            "The same run gives the same bytes, whenever and wherever it is exported.",
            "",
            "\b",
            "Formats:",
            *lines,
            "",
            "Examples:",
            "  signoff export json first-try -o run.json",
            "  signoff export otel first-try --send    to the collector on this machine",
        ]
    )


@click.command(cls=CliCommand, help=_help())
@click.argument("format_name", metavar="FORMAT")
@click.argument("run", required=False, shell_complete=complete_run)
@click.option("-o", "--output", "file", type=click.Path(dir_okay=False, path_type=Path),
              metavar="FILE", help="Write to FILE instead of stdout.")  # fmt: skip
@click.option("--send", is_flag=True,
              help="Send a trace to the collector at OTEL_EXPORTER_OTLP_ENDPOINT.")  # fmt: skip
@debug_option
def command(format_name: str, run: str | None, file: Path | None, send: bool) -> None:
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
