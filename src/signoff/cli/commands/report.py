"""`signoff report`."""

from __future__ import annotations

from pathlib import Path

import click

from signoff.app.history import export
from signoff.app.show import show
from signoff.cli.options import CliCommand, open_here, output_options, run_argument
from signoff.cli.output import Output
from signoff.cli.text import near
from signoff.documents.regular_files import replace_private

FORMATS = {"html": "html", "md": "markdown"}
"""The formats of a report, and the exports that write them."""
FILE_NAME = "signoff-report"
"""The name in the run's folder, which workflows hardly use for files of their own."""


@click.command(cls=CliCommand)
@run_argument
@click.option("-o", "--output", "file", type=click.Path(dir_okay=False, path_type=Path),
              metavar="FILE", help="Where to write it; by default beside the run.")  # fmt: skip
@click.option("--format", "format_name", type=click.Choice(list(FORMATS)),
              help="html, or md for a comment on a pull request.")  # fmt: skip
@output_options
def command(run: str | None, file: Path | None, format_name: str | None, out: Output) -> None:
    """Write a report of RUN: findings, changes, decisions, cost (default: the latest run).

    It is one file that needs nothing else: no scripts, no network. Without --format, the
    name of FILE decides.

    Examples:
      signoff report                        the latest run, into its folder
      signoff report first -o report.html
      signoff report --format md -o comment.md
    """
    chosen = format_name or _format_of(file)
    with open_here() as project:
        name = project.run(run).name
        target = file or show(project, name).folder / f"{FILE_NAME}.{chosen}"
        replace_private(target, export(project, FORMATS[chosen], name))
    if out.as_json:
        out.json({"run": name, "format": chosen, "file": str(target.absolute())})
        return
    out.line(f"report: {near(target.absolute())}")


def _format_of(file: Path | None) -> str:
    return "md" if file is not None and file.suffix in (".md", ".markdown") else "html"
