"""`signoff graph`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from signoff.cli.options import complete_target, debug_option, json_option, notation_options, output

_EPILOG = """\b
Examples:
  signoff graph flow.py
  signoff graph flow.py --format mermaid > flow.mmd
"""


@click.command(epilog=_EPILOG)
@click.argument("target", shell_complete=complete_target)
@click.option(
    "--format", "form", type=click.Choice(["text", "mermaid"]), default="text", show_default=True,
    help="The output format: text, or a Mermaid diagram.",
)  # fmt: skip
@notation_options("graph")
@json_option
@debug_option
def command(target: str, form: str, options: dict[str, Any], as_json: bool) -> None:
    """Draw the steps of TARGET and where each outcome leads.

    Loops are marked with their bounds.
    """
    from signoff.app.targets import find_workflow
    from signoff.core import graph

    out = output(as_json)
    workflow = find_workflow(target, Path.cwd(), os.environ, options)
    if as_json:
        out.json(graph.data(workflow))
    else:
        draw = graph.mermaid if form == "mermaid" else graph.text
        out.line(draw(workflow).rstrip("\n"))
