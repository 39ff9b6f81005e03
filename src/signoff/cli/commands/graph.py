"""`signoff graph`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from signoff.app.targets import find_workflow
from signoff.cli.options import CliCommand, complete_target, notation_options, output_options
from signoff.cli.output import Output
from signoff.core import graph


@click.command(cls=CliCommand)
@click.argument("target", shell_complete=complete_target)
@click.option("--format", "form", type=click.Choice(["text", "mermaid"]), default="text",
              show_default=True, help="The output format: text, or a Mermaid diagram.")  # fmt: skip
@notation_options("graph")
@output_options
def command(target: str, form: str, options: dict[str, Any], out: Output) -> None:
    """Draw the steps of TARGET and where each outcome leads.

    Loops are marked with their bounds.

    Examples:
      signoff graph flow.py
      signoff graph flow.py --format mermaid > flow.mmd
    """
    workflow = find_workflow(target, Path.cwd(), os.environ, options)
    if out.as_json:
        out.json(graph.data(workflow))
    else:
        draw = graph.mermaid if form == "mermaid" else graph.text
        out.line(draw(workflow).rstrip("\n"))
