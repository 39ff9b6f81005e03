"""`signoff skill script`: runs a sub-agent's script in the Python that signoff is installed in.

Which `python3` an agent finds depends on its shell, and it often lacks signoff.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from runpy import run_module
from warnings import filterwarnings

import click

from signoff.app.trust import context_here
from signoff.cli.options import CliCommand, project_dir_option
from signoff.documents.python_files import describe_failure, extend_import_path, make_importable
from signoff.errors import HandlerFailed, SignoffError, UsageError
from signoff.skills.discovery import skills_folder


@click.command(
    cls=CliCommand,
    # Everything after the module belongs to the script, options included.
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@project_dir_option
@click.argument("module", metavar="MODULE")
@click.argument("arguments", metavar="[ARGUMENT]...", nargs=-1, type=click.UNPROCESSED)
def script(module: str, arguments: Sequence[str]) -> None:
    """Run the script of a sub-agent.

    MODULE is a Python module of the project, of its `skills` folder, or of an installed package.
    It runs like `python -m MODULE`, in the Python that signoff is installed in.

    Examples:
      signoff skill script signoff.skills.quality_review --phase plan-design --state-dir DIR
    """
    context = context_here()
    context.trust("skills")
    # The same places in which a skill's own module is found, so that its scripts can be next to it.
    make_importable([Path.cwd(), context.root, *skills_folder(context)])
    extend_import_path(module)
    if not _exists(module):
        raise UsageError(f"unknown script {module!r}: there is no Python module of that name")
    # That a package imports its own script is nothing the agent could do anything about.
    filterwarnings("ignore", category=RuntimeWarning, module="runpy")
    # The script sees its arguments as if Python had been started with it.
    sys.argv[1:] = arguments
    try:
        run_module(module, run_name="__main__", alter_sys=True)
    except SignoffError:
        raise
    except Exception as error:  # a user's script may raise anything at all
        raise HandlerFailed(f"the script {module} failed: {describe_failure(error)}") from error


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False
