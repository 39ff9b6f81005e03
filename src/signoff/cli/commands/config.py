"""`signoff config`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from signoff.app.home import find_home
from signoff.app.settings import load_settings, settings_files
from signoff.cli.options import Group, output_options
from signoff.cli.output import Output


@click.group(cls=Group)
def command() -> None:
    """Show settings and where each comes from.

    Examples:
      signoff config show
      signoff config path
      SIGNOFF_LIMITS_USD=2 signoff config show --json

    Lowest to highest precedence: built-in, user file, project file, environment
    (SIGNOFF_DATABASE, SIGNOFF_LOG_LEVEL, SIGNOFF_WORKFLOWS, SIGNOFF_DATA_URL,
    SIGNOFF_LIMITS_USD, ..._TOKENS, ..._CALLS, ..._SECONDS), command line.
    """


@command.command()
@output_options
def show(out: Output) -> None:
    """Show all settings and where each comes from."""
    settings = load_settings(find_home(Path.cwd(), os.environ), os.environ).masked()
    if out.as_json:
        out.json({key: {"value": s.value, "origin": s.origin} for key, s in settings.items()})
        return
    rows = [(key, _format(s.value), s.origin) for key, s in settings.items()]
    out.table(("SETTING", "VALUE", "FROM"), rows)


@command.command()
@output_options
def path(out: Output) -> None:
    """Show the settings files, lowest precedence first."""
    files = settings_files(find_home(Path.cwd(), os.environ), os.environ)
    if out.as_json:
        out.json([{"path": str(file), "exists": file.is_file()} for file in files])
        return
    for file in files:
        out.line(f"{file}{'' if file.is_file() else '  (not found)'}")


def _format(value: object) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else json.dumps(value)
