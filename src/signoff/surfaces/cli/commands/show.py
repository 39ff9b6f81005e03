"""`signoff show` and `signoff logs`."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import click

from signoff.app.runs.runs import catch_up
from signoff.app.runs.show import RunDetails, afterwards, logs, show
from signoff.core.amounts import UNKNOWN, duration, money, partial
from signoff.core.events import to_json
from signoff.core.spend import LedgerEntry
from signoff.documents.control_characters import json_text
from signoff.store.run_layout import EndView
from signoff.surfaces.cli import options as cli
from signoff.surfaces.cli import summary
from signoff.surfaces.cli.output import Output, moment
from signoff.views.narration import LogLine, Weight, describe_answer
from signoff.views.timeline import Timeline


@cli.command()
@cli.run_argument
@click.option("--state", "with_state", is_flag=True,
              help="Include the run's state; with --json, as `state`.")  # fmt: skip
def command(run: str | None, with_state: bool, out: Output) -> None:
    """Show RUN in detail (default: the latest run).

    Examples:
      signoff show                 the latest run
      signoff show first-try
      signoff show first-try --json | jq .spend
      signoff show first-try --json --state | jq .state.notes

    With --json: run, workflow, status, step, round, exit_code, inbox, spend, steps and
    more. A cost that a call did not report is null, never 0.
    """
    with cli.open_here() as project:
        name = project.run(run).name
        catch_up(project, name, out.warn, repair=False)
        report = show(project, name)
        if report.end is not None and not _shows(report.folder, report.end):
            catch_up(project, name, out.warn)
        if out.as_json:
            state = {"state": report.state} if with_state else {}
            out.json({**summary.report_to_json(report), **state})
            return
        summary.print_summary(report, out)
        summary.print_details(report, out)
        _print_rounds(report, out)
        _describe(report, out)
        if with_state:
            out.line()
            out.line("  state")
            summary.print_indented(json_text(report.state, indent=2), out)


def _shows(folder: Path, end: EndView) -> bool:
    """Tells whether a run's folder has what its end left, in the words of this version."""
    if not (folder / end.path).exists():
        return False
    guide = end.files.get(end.guide)
    try:
        return guide is None or (folder / end.guide).read_text("utf-8").startswith(guide)
    except (OSError, UnicodeDecodeError):
        return False


def _print_rounds(report: RunDetails, out: Output) -> None:
    """Prints the findings of each round, and what became of them."""
    if report.review is None or not report.review.findings:
        return
    from signoff.surfaces.cli.review_lines import COLUMNS, SPARE, round_rows

    if rows := list(round_rows(report.review)):
        out.line()
        out.table(COLUMNS, rows, spare=SPARE)
        out.note(f"\nall of each finding: signoff findings {report.row.name}")


def _describe(report: RunDetails, out: Output) -> None:
    row, line = report.row, report.timeline
    out.line()
    out.line(f"  workflow {row.workflow}  {row.target}")
    out.line(f"  started  {moment(row.created_at)}, round {row.iteration}")
    if report.driver is not None:
        out.line(f"  driver   process {report.driver.pid} on {report.driver.host_name}")
    limits = ", ".join(f"{name} {value:g}" for name, value in line.state.limits.to_json().items())
    if limits:
        out.line(f"  limits   {limits}")
    out.line()
    rows = [
        (
            v.step,
            v.iteration,
            v.result or row.status.value,
            duration(v.seconds),
            v.attempts,
            ", ".join(f"{count} {kind}" for kind, count in v.effects.items()),
        )
        for v in line.visits
    ]
    columns = ("STEP", "ROUND", "OUTCOME", "TIME", "ATTEMPTS", "EFFECTS")
    out.table(columns, rows, spare=("ATTEMPTS",))
    _print_errors(line, out)
    _print_decisions(line, out)
    if report.ledger:
        out.line()
        costs = [
            (
                e.agent,
                e.model or "-",
                e.step,
                e.calls,
                partial(money(e.usd), e.usd, e.unknown_usd),
                _tokens(e),
            )
            for e in report.ledger
        ]
        headings = ("AGENT", "MODEL", "STEP", "CALLS", "COST", "TOKENS")
        out.table(headings, costs, spare=("MODEL", "STEP"))


def _tokens(entry: LedgerEntry) -> str:
    if entry.unknown_tokens:
        return UNKNOWN
    cached = f" ({entry.tokens_cached:,} cached)" if entry.tokens_cached else ""
    return f"{entry.tokens_in:,} in{cached} · {entry.tokens_out:,} out"


def _print_errors(line: Timeline, out: Output) -> None:
    """Prints the errors of steps after which the workflow continued."""
    failed = [visit for visit in line.visits if visit.error]
    if failed:
        out.line()
    for visit in failed:
        again = f" (entered {visit.visit} times)" if visit.visit > 1 else ""
        out.prose(f"  {visit.step}{again} failed: {visit.error}", style="red", hang="    ")


def _print_decisions(line: Timeline, out: Output) -> None:
    """Prints who decided what, and why."""
    if line.decisions:
        out.line()
    for each in line.decisions:
        words = describe_answer(asdict(each))
        out.prose(f"  {moment(each.at)}  {each.step}: {words}", hang="    ")


@cli.command()
@cli.run_argument
@click.option("-f", "--follow", is_flag=True, help="Follow the run.")
@click.option("-v", "--verbose", is_flag=True, help="Include details such as every call.")
def logs_command(run: str | None, follow: bool, out: Output) -> None:
    """Show the log of RUN (default: the latest run).

    With --json, prints an array of events; with -f too, one event per line.

    Examples:
      signoff logs                 the latest run
      signoff logs -f first-try    follow it until it stops or waits
      signoff logs --json          all events in full
    """
    with cli.open_here() as project:
        run = project.run(run).name
        catch_up(project, run, out.warn, repair=False)
        sleep = time.sleep if follow else None
        entries = logs(project, run, sleep=sleep)
        if not out.as_json:
            for entry in entries:
                _print(entry.lines, out)
            _print(afterwards(project, run), out)
            return
        events = ({"seq": entry.seq, **to_json(entry.event)} for entry in entries)
        if not follow:
            out.json(list(events))
            return
        for event in events:
            out.json_line(event)
        # Stdout is for events only.
        for line in afterwards(project, run):
            out.note(line.text)


def _print(lines: Iterable[LogLine], out: Output) -> None:
    for line in lines:
        if out.verbose or line.weight is not Weight.DETAIL:
            style = "red" if line.weight is Weight.TROUBLE else ""
            out.line(f"{moment(line.at)}  {line.text}", style=style)
