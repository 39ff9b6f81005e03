"""`signoff init`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from signoff.cli.options import debug_option, json_option, output

_EPILOG = """\b
Examples:
  signoff init                 in the root of your project
  signoff init path/to/project
"""


@click.command(epilog=_EPILOG)
@click.argument("folder", required=False, type=click.Path(file_okay=False, path_type=Path))
@json_option
@debug_option
def command(folder: Path | None, as_json: bool) -> None:
    """Make a .signoff/ home: settings, constraints/ and flows/.

    What is there already is left alone, so it is safe to repeat. Commit the folder:
    its .gitignore keeps the database and the runs out.
    """
    from signoff.app.home import init_home

    out = output(as_json)
    made = init_home((folder or Path()).absolute(), os.environ)
    if as_json:
        out.json({"home": str(made.home.path), "created": [str(p) for p in made.created]})
        return
    if not made.created:
        out.line(f"{made.home.path} is complete already")
        return
    for path in made.created:
        out.line(f"made {path.relative_to(made.home.root)}{'/' if path.is_dir() else ''}")
    out.note("next: signoff run flow.py  (or put workflows into .signoff/flows/)")
