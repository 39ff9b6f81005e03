"""`signoff findings`, `signoff diff` and `signoff cat`: what a review has come to."""

from __future__ import annotations

import sys

import click

from signoff.app.runs import history as run_history
from signoff.core.amounts import count
from signoff.core.errors import UnknownName
from signoff.core.severity import Severity
from signoff.core.words import read_labels
from signoff.review.pure.finding import group_equal
from signoff.review.pure.history import ReviewHistory, Version, change_to_json, finding_to_json
from signoff.surfaces.cli import options as cli
from signoff.surfaces.cli.output import Output, clean, is_terminal
from signoff.surfaces.cli.review_lines import finding_lines, hunk_lines, totals


@cli.command()
@click.argument("run", metavar="[RUN|FINDING]", required=False, shell_complete=cli.complete_run)
@click.option("--severity", "severities", multiple=True, metavar="NAME",
              help="Only findings of this severity. Repeatable.")  # fmt: skip
@click.option("--status", "statuses", multiple=True, metavar="NAME",
              help="Only open findings, or those that are new, still_open, back, "
              "caused_by_fix, fixed, dismissed or ignored. Repeatable.")  # fmt: skip
@click.option("--constraint", "constraints", multiple=True, metavar="ID",
              help="Only findings of this constraint. Repeatable.")  # fmt: skip
def command(
    run: str | None,
    severities: tuple[str, ...],
    statuses: tuple[str, ...],
    constraints: tuple[str, ...],
    out: Output,
) -> None:
    """List the findings of RUN, and what became of them (default: the latest run).

    With the id of a FINDING, or the beginning of it, show that one; of several runs that know
    it, in the newest.

    Examples:
      signoff findings                        every finding of the latest run
      signoff findings --status open
      signoff findings 3fa9c0de11b2           one finding, of any run
      signoff findings first-try --severity critical --severity high
      signoff findings --json | jq '.[] | select(.status == "back") | .path'
    """
    with cli.open_here() as project:
        row, one = (
            run_history.find_run_or_finding(project, run) if run is not None else (None, None)
        )
        row, history = run_history.need_review(project, row.name if row is not None else None)
    found = run_history.select_findings(
        history, [*map(_severity, severities)], read_labels(statuses), constraints
    )
    if one is not None:
        found = [each for each in found if each.id == one.id]
    if out.as_json:
        which = {"run": row.name} if one is not None else {}
        out.json([{**finding_to_json(history, each), **which} for each in found])
        return
    if one is not None:
        out.line(f"run {row.name}")
    for group in group_equal(found):
        for text, style in finding_lines(history, group):
            out.prose(text, style, hang="    ")
    out.line(totals(found))


def _severity(name: str) -> Severity:
    found = Severity.named(name)
    if found is None:
        raise UnknownName("severity", name, [each.value for each in Severity])
    return found


@cli.command()
@cli.run_argument
@click.option("--round", "number", type=int, metavar="N",
              help="Only what the fixes of round N changed.")  # fmt: skip
@click.option("--from", "first", type=int, metavar="A",
              help="From the version that round A reviewed.")  # fmt: skip
@click.option("--to", "last", type=int, metavar="B",
              help="To the version that round B reviewed; by default the last one.")  # fmt: skip
def diff_command(
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
    # One names what a round fixed, the others name two versions: together they say nothing.
    if number is not None and (first is not None or last is not None):
        raise click.UsageError("use either --round, or --from and --to")
    with cli.open_here() as project:
        row, history = run_history.need_review(project, run)
    pairs = run_history.changes(history, row.name, number, first, last)
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


@cli.command()
@click.argument("run", required=False, shell_complete=cli.complete_run)
@click.argument("path", required=False)
@click.option("--round", "number", type=int, metavar="N",
              help="The version that round N reviewed.")  # fmt: skip
def cat_command(run: str | None, path: str | None, number: int | None, out: Output) -> None:
    """Print the artifact of RUN (default: the latest run).

    It is the version that passed review, else the best one that was reviewed, else the latest. Of
    several files, PATH chooses one; without it, each is printed below its name.

    Examples:
      signoff cat > result.md
      signoff cat first-try --round 1
      signoff cat first-try docs/guide.md
    """
    with cli.open_here() as project:
        row, history = run_history.need_review(project, run)
    version = run_history.artifact(history, row.name, number)
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
