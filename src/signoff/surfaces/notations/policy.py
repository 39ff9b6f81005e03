"""`signoff policy`, and `signoff dismiss`, whose decisions about findings later runs respect."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import click

from signoff.app.people.answering import current_user
from signoff.app.runs.history import events_of, find_finding, find_run_or_finding
from signoff.app.settings.project import Project
from signoff.core.errors import UsageError
from signoff.core.remedies import ShowRun
from signoff.core.words import FindingStatus
from signoff.review.flow import policy as recorded_runs
from signoff.review.flow.decision_file import add_decisions
from signoff.review.flow.policy import Explanation, Replay, ReviewedRun, reviewed_run
from signoff.review.pure.critique import Pursuit
from signoff.review.pure.finding import Finding
from signoff.review.pure.lasting_decision import LastingDecision
from signoff.surfaces.cli import options
from signoff.surfaces.cli.output import Output, one_line

_EPILOG = """\b
Examples:
  signoff policy explain first-try 3fa9c0de11b2  a finding of the run
  signoff policy explain 3fa9c0de11b2            the same, in any run
  signoff policy replay first-try --policy stricter.yaml

A policy file has default_behavior, constraint_behaviors and adjudication.approval as in a
flow; whatever it leaves out stays as it was in the run. A whole flow file works too.
"""


@click.group(cls=options.Group, epilog=_EPILOG)
def policy() -> None:
    """Explain findings, or replay a run with another policy."""


@policy.command()
@click.argument("run", metavar="RUN|FINDING", shell_complete=options.complete_run)
@click.argument("finding", required=False)
@options.json_option
@options.debug_option
def explain(run: str, finding: str | None, as_json: bool) -> None:
    """Show what set the behavior of a finding.

    FINDING is a finding's id, or the beginning of it. Without a RUN, the newest one that knows the
    finding counts.
    """

    out = options.output(as_json)
    with options.open_here() as project:
        row, found = find_run_or_finding(project, run)
        if finding is not None:
            row, _, found = find_finding(project, finding, row.name)
        if found is None:
            raise UsageError("name a finding of the run", remedy=ShowRun(row.name))
        explanation = recorded_runs.explain(recorded_run(project, row.name), found)
    out.json(explanation.to_json()) if as_json else _print_explanation(explanation, out)


@policy.command()
@click.argument("run", shell_complete=options.complete_run)
@click.option(
    "--policy",
    "file",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The file with the other policy.",
)
@options.json_option
@options.debug_option
def replay(run: str, file: Path, as_json: bool) -> None:
    """Replay RUN with another policy, without any call.

    The behavior of every finding is determined again and compared with the recorded one.
    """

    out = options.output(as_json)
    with options.open_here() as project:
        replayed = recorded_runs.replay(recorded_run(project, run), file)
    out.json(replayed.to_json()) if as_json else _print_replay(replayed, out)


def recorded_run(project: Project, name: str) -> ReviewedRun:
    """Returns a run of a review flow from its journal."""

    row = project.run(name)
    events = (event for _, event in events_of(project, row))
    return reviewed_run(row.name, project.store.description(row.id), events)


def _history(finding: Finding) -> str:
    return ", ".join(f"{label.words} in {iteration}" for iteration, label in finding.history)


def _print_explanation(explanation: Explanation, out: Output) -> None:

    finding, resolved = explanation.finding, explanation.resolved
    head = f"{finding.id}  {finding.severity.value}  {finding.constraint}"
    out.line(f"{head}  {one_line(finding.finding)}")
    unverified = "  (not found)" if finding.unverified else ""
    ignored = finding.status is FindingStatus.IGNORED
    unused = "; not applied, it is ignored" if ignored else ""
    details = {
        "run": explanation.run,
        "rule": finding.rule,
        "quote": "something is missing" if finding.omission else f"{finding.quote}{unverified}",
        "location": finding.location,
        "fix": finding.suggested_fix,
        "status": f"{finding.became.words}{finding.reason and f': {finding.reason}'}",
        "history": _history(finding),
        "behavior": f"{resolved.behavior.value}, set by {resolved.level.value}{unused}",
        "blocks": "yes" if explanation.blocks else "no",
    }
    for name, text in details.items():
        if text:
            out.line(f"  {name:<8}  {one_line(text)}")
    if decision := explanation.decision:
        why = decision.get("rationale") or decision.get("guidance") or ""
        out.line(f"  judge     {Pursuit(decision['status']).words}{f': {why}' if why else ''}")
    out.line()
    rows = [
        (level.value, behavior.value if behavior else "-", "<" if level is resolved.level else "")
        for level, behavior in resolved.by_level
    ]
    out.table(("LEVEL, STRONGEST FIRST", f"BEHAVIOR OF {finding.severity.value}", ""), rows)


def _print_replay(replayed: Replay, out: Output) -> None:
    changed = [each for each in replayed.issues if each.changed]
    if changed:
        rows = [
            (e.round, e.step, e.finding or e.issue, e.severity.value, e.was, e.now.value)
            for e in changed
        ]
        out.table(("ROUND", "STEP", "FINDING", "SEVERITY", "WAS", "WOULD BE"), rows)
        out.line()
    if replayed.verdicts:
        verdicts = [
            (v.round, v.step, v.was.words, v.now.words, ", ".join(v.blocking))
            for v in replayed.verdicts
        ]
        out.table(("ROUND", "JUDGE", "WAS", "WOULD BE", "BLOCKING"), verdicts)
        out.line()
    out.line(f"{len(changed)} of {len(replayed.issues)} reported findings would behave differently")
    if replayed.parts_at:
        out.line(
            f"the run would have diverged at {replayed.parts_at}; later steps are shown as recorded"
        )
    else:
        out.line("the run would not have diverged")


@click.command(cls=options.CliCommand)
@click.argument("finding")
@click.option("--why", required=True, metavar="TEXT", help="The reason, which is recorded.")
@click.option(
    "--all-like", is_flag=True, help="Dismiss everything that its rule reports, now and later."
)
@click.option("--in", "files", metavar="GLOB", help="With --all-like, only in these files.")
@click.option("--until", metavar="DATE", help="The last day on which it holds, as 2026-12-31.")
@click.option("--run", "run", metavar="RUN", shell_complete=options.complete_run,
              help="The run that found it; the latest one that knows it by default.")  # fmt: skip
@options.output_options
def dismiss(
    finding: str,
    why: str,
    all_like: bool,
    files: str | None,
    until: str | None,
    run: str | None,
    out: Output,
) -> None:
    """Dismiss a finding in later runs, while its passage is unchanged.

    FINDING is its id, or the beginning of it. The decision is added to .signoff/decisions.yaml,
    which you commit; it replaces an earlier one about the same finding.

    Examples:
      signoff dismiss 0a99eb9001c4 --why "It is a slogan."
      signoff dismiss 0a99 --all-like --in "tests/*" --why "Tests may do that."
      signoff dismiss 0a99 --why "Fixed with the new parser." --until 2026-12-31
    """

    if not why.strip():
        raise UsageError("write the reason: --why TEXT")
    if files is not None and not all_like:
        raise UsageError("--in GLOB needs --all-like: a finding is in one file")
    today = date.today()  # noqa: DTZ011  # the user's own calendar
    if until is not None:
        _check_day(until, today)
    with options.open_here() as project:
        row, _, found = find_finding(project, finding, run)
        if all_like and not found.rule:
            raise UsageError(f"finding {found.id} names no rule; dismiss it without --all-like")
        record = {"by": current_user(), "on": today.isoformat(), "until": until or ""}
        decision = (
            LastingDecision.about_rule(found, why, files or "", **record)
            if all_like
            else LastingDecision.about_finding(found, why, **record)
        )
        path = add_decisions(project.home.path, [decision], replace=True)
    if out.as_json:
        out.json({"file": str(path), "run": row.name, "decision": decision.to_json()})
    else:
        like = f"everything like {found.id}" if all_like else found.id
        out.line(f"dismissed {like} of run {row.name} in later runs; commit {path}")


def _check_day(text: str, today: date) -> None:
    try:
        day = date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"--until {text!r} is not a date; write it as 2026-12-31") from error
    if day < today:
        raise UsageError(f"--until {text} has passed, so the decision would have no effect")
