"""`signoff reject`."""

from __future__ import annotations

import click

from signoff.cli.display_options import DisplayOptions
from signoff.cli.options import (
    answer_options,
    complete_run,
    debug_option,
    open_here,
    progress_options,
)

_EPILOG = """\b
Examples:
  signoff reject                          the latest run's only request
  signoff reject 7 --why "..." --resume
  signoff reject first-try --digest 3f2a9c01b7de
"""


@click.command(epilog=_EPILOG)
@click.argument("where", required=False, metavar="[ITEM|RUN]", shell_complete=complete_run)
@click.option("--why", "--text", "why", default="", help="The reason, which is recorded.")
@answer_options
@progress_options
@debug_option
def command(
    where: str | None,
    why: str,
    by: str,
    digest: str | None,
    go_on: bool,
    limits: dict[str, str],
    display: DisplayOptions,
) -> int:
    """Reject a request: no to what was shown.

    The workflow gets the reason and decides how to proceed.
    """
    from signoff.app.answering import Given, find_item, reject
    from signoff.cli.decisions import Decided, after_decision

    with open_here(limits=limits) as project:
        item = find_item(project, where)
        done = reject(project, item.id, Given(None, why, by, digest))
        return after_decision(project, display, Decided(done, "rejected"), go_on=go_on)
