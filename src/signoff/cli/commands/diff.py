"""`signoff diff`."""

from __future__ import annotations

import click

from signoff.app.history import changes, need_review
from signoff.cli.options import CliCommand, open_here, output_options, run_argument
from signoff.cli.output import Output
from signoff.cli.review_lines import hunk_lines
from signoff.review.history import ReviewHistory, Version, change_to_json
from signoff.runtime.amounts import count


@click.command(cls=CliCommand)
@run_argument
@click.option("--round", "number", type=int, metavar="N",
              help="Only what the fixes of round N changed.")  # fmt: skip
@click.option("--from", "first", type=int, metavar="A",
              help="From the version that round A reviewed.")  # fmt: skip
@click.option("--to", "last", type=int, metavar="B",
              help="To the version that round B reviewed; by default the last one.")  # fmt: skip
@output_options
def command(
    run: str | None, number: int | None, first: int | None, last: int | None, out: Output
) -> None:
    """Show what RUN changed in the artifact, round by round (default: the latest run).

    Each hunk names the findings that it answers. With --from or --to, the changes between
    two versions are shown as one diff.

    Examples:
      signoff diff                 what each round changed
      signoff diff first --round 2
      signoff diff --from 1        everything since the first version
    """
    if number is not None and (first is not None or last is not None):
        raise click.UsageError("use either --round, or --from and --to")
    with open_here() as project:
        row, history = need_review(project, run)
    pairs = changes(history, row.name, number, first, last)
    if out.as_json:
        out.json([change_to_json(history, *pair) for pair in pairs])
        return
    for pair in pairs:
        _print_change(history, *pair, out)
    if not pairs:
        versions = count(len(history.versions), "version")
        out.note(f"nothing was changed: run {row.name!r} has {versions} of the artifact")


def _print_change(history: ReviewHistory, before: Version, after: Version, out: Output) -> None:
    by_path = history.changes(before, after)
    hunks = [hunk for found in by_path.values() for hunk in found]
    added, removed = sum(h.added for h in hunks), sum(h.removed for h in hunks)
    title = f"version {before.number} to {after.number}"
    if after.number == before.number + 1:
        title = f"round {after.round}: {title}, by {after.agent or 'exact edits'}"
    out.line(f"{title} (+{added} -{removed})", "dim")
    for path, found in by_path.items():
        name = history.name_of(path)
        out.line(f"--- a/{name}\n+++ b/{name}")
        for hunk in found:
            for text, style in hunk_lines(history, hunk):
                out.line(text, style)
    if not hunks:
        out.line("no line was changed", "dim")
