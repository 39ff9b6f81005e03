"""`signoff export`, `report` and `metrics`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from signoff import plugins
from signoff.app.runs.history import export
from signoff.app.runs.run_records import metrics_text
from signoff.app.runs.show import show
from signoff.app.settings.project import Project
from signoff.core.errors import ConfigError, UsageError
from signoff.documents.regular_files import replace_private
from signoff.surfaces.cli import options as cli
from signoff.surfaces.cli.output import Output, clean, near


class ExportCommand(cli.CliCommand):
    """Lists the formats in its help; only then are they, and installed packages, looked up."""

    @property
    def help(self) -> str:
        """The text of `--help`, with the formats that are installed."""
        names = sorted(plugins.paths("exports"))
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


@cli.command(cls=ExportCommand)
@click.argument("format_name", metavar="FORMAT")
@click.argument("run", required=False, shell_complete=cli.complete_run)
@click.option("-o", "--output", "file", type=click.Path(dir_okay=False, path_type=Path),
              metavar="FILE", help="Write to FILE instead of stdout.")  # fmt: skip
def command(format_name: str, run: str | None, file: Path | None, out: Output) -> None:
    """Export RUN (default: the latest run) as FORMAT.

    The same run gives the same bytes, whenever and wherever it is exported.

    Examples:
      signoff export json first-try -o run.json
      signoff export otel first-try > trace.jsonl
    """
    with cli.open_here() as project:
        if run is not None and not project.has_run(run):
            _refuse_swapped(project, format_name, run)
        name = project.run(run).name
        done: dict[str, object] = {"run": name, "format": format_name}
        parts = export(project, format_name, name)
        if file is not None:
            replace_private(file, parts)
            done["file"] = str(file)
        elif out.as_json:
            done["document"] = "".join(parts)
        else:
            for part in parts:
                sys.stdout.write(clean(part) if out.pretty else part)
    if out.as_json:
        out.json(done)


def _refuse_swapped(project: Project, format_name: str, run: str) -> None:
    """Raises `UsageError` if the run and the format are in the place of each other."""
    if project.has_run(format_name) and run in plugins.paths("exports"):
        raise UsageError(f"the format comes first: signoff export {run} {format_name}")


FORMATS = {"html": "html", "md": "markdown"}
"""The formats of a report, and the exports that write them."""
FILE_NAME = "signoff-report"
"""The name in the run's folder, which workflows hardly use for files of their own."""


@cli.command()
@cli.run_argument
@click.option("-o", "--output", "file", type=click.Path(dir_okay=False, path_type=Path),
              metavar="FILE", help="Where to write it; by default beside the run.")  # fmt: skip
@click.option("--format", "format_name", type=click.Choice(list(FORMATS)),
              help="html, or md for a comment on a pull request.")  # fmt: skip
def report_command(
    run: str | None, file: Path | None, format_name: str | None, out: Output
) -> None:
    """Write a report of RUN: findings, changes, decisions, cost (default: the latest run).

    It is one file that needs nothing else: no scripts, no network. Without --format, the
    name of FILE decides.

    Examples:
      signoff report                        the latest run, into its folder
      signoff report first -o report.html
      signoff report --format md -o comment.md
    """
    chosen = format_name or _format_of(file)
    with cli.open_here() as project:
        name = project.run(run).name
        target = file or show(project, name).folder / f"{FILE_NAME}.{chosen}"
        replace_private(target, export(project, FORMATS[chosen], name))
    document = {"run": name, "format": chosen, "file": str(target.absolute())}
    out.show(document, f"report: {near(target.absolute())}")


def _format_of(file: Path | None) -> str:
    return "md" if file is not None and file.suffix in (".md", ".markdown") else "html"


@cli.command()
def metrics_command(out: Output) -> None:
    """Print metrics of all runs in the text format of Prometheus.

    They are computed from the database, so they are right after crashes and restarts, and
    include runs that other processes drive.

    Examples:
      signoff metrics
      signoff metrics > /var/lib/node_exporter/signoff.prom
    """
    with cli.open_here() as project:
        text = metrics_text(project.store, project.clock.now())
    if out.as_json:
        out.json({"format": "prometheus", "text": text})
    else:
        sys.stdout.write(text)
