"""`signoff trust`, and the question that other commands ask instead."""

from __future__ import annotations

import os
from pathlib import Path

import click

from signoff.app.people.answering import refuse_worker
from signoff.app.settings.home import Home, need_home
from signoff.app.settings.project import WORKER_VARIABLE
from signoff.app.settings.settings import load_settings
from signoff.app.settings.trust import all_lines
from signoff.core.errors import NotTrusted, WriteFailed
from signoff.documents.trust import TrustLine, forget, remember, untrusted, visible
from signoff.surfaces.cli import options as cli
from signoff.surfaces.cli.output import Output, near, read_key, wrapped

STORED = "the answer cannot be stored ({why}); set SIGNOFF_TRUST=1 instead"


@cli.command()
@click.option("--show", is_flag=True, help="Show the lines that need trust, and change nothing.")
@click.option("--revoke", is_flag=True, help="Forget what you have trusted in this project.")
def command(show: bool, revoke: bool, out: Output) -> None:
    """Trust what the settings and definitions of this project may do.

    A project can name programs and addresses, bring Python code, and replace agents of your own
    settings. Before anything of that is used, signoff shows you the lines and asks once; without a
    terminal it exits with 2. The answer is stored outside the project. You are asked again when
    one of these lines is new or has changed, and then only about that one.

    With SIGNOFF_TRUST=1 every project is trusted, for CI and containers.

    Examples:
      signoff trust --show
      signoff trust
      signoff trust --revoke
    """
    refuse_worker(os.environ.get(WORKER_VARIABLE, ""), "trust a project")
    home = need_home(Path.cwd(), os.environ)
    if revoke:
        count = forget(home.path, os.environ)
        out.show({"home": str(home.path), "revoked": count}, f"{count} lines forgotten")
        return
    lines = _lines(home)
    asked = untrusted(home.path, lines, os.environ)
    if not out.as_json:
        for each in lines if show else asked:
            out.prose(f"  {each}", hang="    ")
    if not show:
        _remember(home, asked)
    words = f"{len(lines)} lines need trust, {len(asked)} of them are new" if show else (
        f"{near(home.path)} is trusted" + (f": {len(asked)} lines" if asked else "")
    )  # fmt: skip
    listed = [{**each._asdict(), "new": each in asked} for each in lines]
    trusted = not show or not asked
    out.show({"home": str(home.path), "lines": listed, "trusted": trusted}, words)


def ask(error: NotTrusted) -> bool:
    """Shows what of the project is new, and asks its user; returns whether it is trusted now."""
    home = Home(Path(error.home))
    asked = untrusted(home.path, _lines(home), os.environ)
    about = (
        f"{visible(near(home.path))} has lines that can run code here, send something elsewhere, "
        "replace your own settings or raise limits:"
    )
    for each in (wrapped(about), *(wrapped(f"  {line}", "    ") for line in asked)):
        click.echo(each, err=True)
    what = "this line" if len(asked) == 1 else f"these {len(asked)} lines"
    trusted = read_key(f"Trust {what}? [y/N] ") in ("y", "Y")
    click.echo("yes" if trusted else "no", err=True)
    if trusted:
        # What was shown, whatever the files say by now.
        _remember(home, asked)
    error.declined = not trusted
    return trusted


def _lines(home: Home) -> list[TrustLine]:
    return all_lines(home, load_settings(home, os.environ))


def _remember(home: Home, lines: list[TrustLine]) -> None:
    try:
        remember(home.path, lines, os.environ)
    except OSError as error:
        raise WriteFailed(STORED.format(why=error.strerror or error)) from error
