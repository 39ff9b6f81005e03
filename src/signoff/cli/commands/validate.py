"""`signoff validate`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from signoff.cli import exits
from signoff.cli.options import complete_target, debug_option, json_option, notation_options, output

_EPILOG = """\b
Examples:
  signoff validate flow.py
  signoff validate package.module:NAME other.py
  signoff validate     the settings and all workflows that can be run by name
"""


@click.command(epilog=_EPILOG)
@click.argument("targets", nargs=-1, metavar="[TARGET]...", shell_complete=complete_target)
@notation_options("validate")
@json_option
@debug_option
def command(targets: tuple[str, ...], options: dict[str, Any], as_json: bool) -> int:
    """Check settings and workflows without running them.

    Every problem is reported with its location and how to fix it. Exits with 2 if there
    are any. Warnings do not change the exit code.
    """
    from signoff.app.validate import validate

    out = output(as_json)
    checked = validate(targets, Path.cwd(), os.environ, options)
    valid = all(each.valid for each in checked)
    if as_json:
        problems = [
            {"target": each.target, "where": p.where, "what": p.what, "remedy": p.remedy}
            for each in checked
            for p in each.problems
        ]
        workflows = [each.workflow for each in checked if each.workflow]
        warnings = [
            {"target": each.target, "what": warning}
            for each in checked
            for warning in each.warnings
        ]
        out.json(
            {"valid": valid, "workflows": workflows, "problems": problems, "warnings": warnings}
        )
        return exits.OK if valid else exits.USAGE
    for each in checked:
        if each.workflow:
            out.line(f"ok  {each.workflow}  ({each.target})")
        for warning in each.warnings:
            # Some warnings start with their file and line.
            located = warning.startswith(Path(each.target).name)
            out.warn(warning if located else f"{each.target}: {warning}")
        for problem in each.problems:
            # Relative paths are shorter, and editors and terminals can open them.
            out.line(str(problem).replace(f"{Path.cwd()}{os.sep}", ""), style="red")
    if not checked:
        out.line("settings are valid; no workflows can be run by name")
    return exits.OK if valid else exits.USAGE
