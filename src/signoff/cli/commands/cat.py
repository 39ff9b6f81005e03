"""`signoff cat`."""

from __future__ import annotations

import sys

import click

from signoff.app.history import artifact, need_review
from signoff.cli.options import CliCommand, complete_run, open_here, output_options
from signoff.cli.output import Output, is_terminal
from signoff.cli.text import clean
from signoff.errors import UnknownName


@click.command(cls=CliCommand)
@click.argument("run", required=False, shell_complete=complete_run)
@click.argument("path", required=False)
@click.option("--round", "number", type=int, metavar="N",
              help="The version that round N reviewed.")  # fmt: skip
@output_options
def command(run: str | None, path: str | None, number: int | None, out: Output) -> None:
    """Print the artifact of RUN (default: the latest run).

    It is the version that passed review, else the best one that was reviewed, else the latest. Of
    several files, PATH chooses one; without it, each is printed below its name.

    Examples:
      signoff cat > result.md
      signoff cat first-try --round 1
      signoff cat first-try docs/guide.md
    """
    with open_here() as project:
        row, history = need_review(project, run)
    version = artifact(history, row.name, number)
    files = {history.name_of(each): text for each, text in version.files.items()}
    if path is not None and path not in files:
        raise UnknownName("file", path, files)
    chosen = {path: files[path]} if path is not None else files
    if out.as_json:
        out.json({"run": row.name, "version": version.number, "files": chosen})
        return
    terminal = is_terminal(sys.stdout)
    for name, text in chosen.items():
        title = f"==> {name} <==\n" if len(chosen) > 1 else ""
        # On a terminal, the artifact must not be able to do more than show itself. Anywhere else
        # it is written as it is; `click.echo` would remove what looks like a color.
        ending = "" if text.endswith("\n") or not terminal else "\n"
        sys.stdout.write(f"{title}{clean(text) if terminal else text}{ending}")
