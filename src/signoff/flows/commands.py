"""The commands of review flows: `signoff policy`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from signoff.cli.options import Group, complete_run, debug_option, json_option, open_here, output
from signoff.cli.text import one_line

if TYPE_CHECKING:
    from signoff.app.project import Project
    from signoff.cli.output import Output
    from signoff.flows.policy import Explanation, ReviewedRun
    from signoff.flows.replay import Replay
    from signoff.review.finding import Finding

_EPILOG = """\b
Examples:
  signoff policy explain first-try               every finding of the run
  signoff policy explain first-try 3fa9c0de11b2  one of them
  signoff policy replay first-try --policy stricter.yaml

A policy file holds default_behavior, constraint_behaviors and adjudication.approval as
in a flow; what it leaves out stays as the run had it. A whole flow file will do as well.
"""


@click.group(cls=Group, epilog=_EPILOG)
def policy() -> None:
    """Explain what findings did, and try another policy on a run."""


@policy.command()
@click.argument("run", shell_complete=complete_run)
@click.argument("finding", required=False)
@json_option
@debug_option
def explain(run: str, finding: str | None, as_json: bool) -> None:
    """Show which level decided what a finding does, or list them all.

    FINDING is its id, the beginning of it, or an issue's id such as short-001, of the latest
    round that has one.
    """
    from signoff.flows.policy import explain as use_case

    out = output(as_json)
    with open_here() as project:
        recorded = recorded_run(project, run)
    if finding is None:
        listed = list(recorded.findings.values())
        out.json([each.to_json() for each in listed]) if as_json else _list(listed, out)
        return
    found = use_case(recorded, finding)
    if as_json:
        out.json(found.to_json())
    else:
        _tell(found, out)


@policy.command()
@click.argument("run", shell_complete=complete_run)
@click.option(
    "--policy",
    "file",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The file with the other policy.",
)
@json_option
@debug_option
def replay(run: str, file: Path, as_json: bool) -> None:
    """Try another policy on RUN; nobody is asked and nothing changes.

    What every finding does is decided anew, and compared with what it did.
    """
    from signoff.flows.policy import replay as use_case

    out = output(as_json)
    with open_here() as project:
        replayed = use_case(recorded_run(project, run), file)
    if as_json:
        out.json(replayed.to_json())
    else:
        _compare(replayed, out)


def recorded_run(project: Project, name: str) -> ReviewedRun:
    """Returns a run of a review flow as its journal has it."""
    from signoff.app.history import events_of
    from signoff.flows.policy import reviewed_run

    row = project.run(name)
    events = (event for _, event in events_of(project, row))
    return reviewed_run(row.name, project.store.description(row.id), events)


def _list(found: list[Finding], out: Output) -> None:
    if not found:
        out.line("nothing was found")
        return
    rows = [
        (f.id, f.severity.value, f.status.value, f.constraint, _story(f), one_line(f.finding, 80))
        for f in found
    ]
    out.table(("FINDING", "SEVERITY", "STATUS", "CONSTRAINT", "STORY", ""), rows)


def _story(finding: Finding) -> str:
    return ", ".join(f"{label} in {iteration}" for iteration, label in finding.history)


def _tell(found: Explanation, out: Output) -> None:
    finding = found.finding
    out.line(f"{finding.id}  {finding.severity.value}  {finding.constraint}  {finding.finding}")
    if not finding.omission:
        out.line(f"  quotes   {finding.quote}{'  (not found)' if found.unverified else ''}")
    out.line(f"  story    {_story(finding)}")
    out.line(f"  does     {found.resolved.behavior.value}: {found.resolved.level.value} says so")
    out.line(f"  blocks   {'yes' if found.blocks else 'no'}")
    if found.decision:
        why = found.decision.get("rationale") or found.decision.get("guidance") or ""
        out.line(f"  judge    {found.decision['status']}{f': {why}' if why else ''}")
    out.line()
    rows = [
        (level.value, said.value if said else "-", "<" if level is found.resolved.level else "")
        for level, said in found.resolved.by_level
    ]
    out.table(("LEVEL, STRONGEST FIRST", f"SAYS OF {finding.severity.value}", ""), rows)


def _compare(replayed: Replay, out: Output) -> None:
    changed = [each for each in replayed.issues if each.changed]
    if changed:
        rows = [
            (e.iteration, e.step, e.issue.id, e.issue.severity.value, e.issue.behavior, e.now.value)
            for e in changed
        ]
        out.table(("ITER", "STEP", "ISSUE", "SEVERITY", "WAS", "WOULD BE"), rows)
        out.line()
    if replayed.verdicts:
        verdicts = [
            (v.iteration, v.step, v.was.value, v.now.value, ", ".join(v.blocking))
            for v in replayed.verdicts
        ]
        out.table(("ITER", "JUDGE", "WAS", "WOULD BE", "IN THE WAY"), verdicts)
        out.line()
    unchanged = len(replayed.issues) - len(changed)
    out.line(f"{len(changed)} of {unchanged + len(changed)} issues would do something else")
    if replayed.parts_at:
        out.line(
            f"the run would have gone another way from {replayed.parts_at}; what follows was "
            "recorded on the road it took"
        )
    else:
        out.line("the run would have gone the same way")
