"""The commands of review flows: `signoff policy` and `signoff prompts`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from signoff.cli.options import (
    CliCommand,
    Group,
    complete_run,
    complete_target,
    debug_option,
    json_option,
    open_here,
    output,
)
from signoff.cli.text import one_line

if TYPE_CHECKING:
    from signoff.app.project import Project
    from signoff.app.sent_prompts import SentPrompt
    from signoff.cli.output import Output
    from signoff.flows.policy import Explanation, ReviewedRun
    from signoff.flows.prompt_preview import PromptPreview
    from signoff.flows.replay import Replay
    from signoff.review.finding import Finding

_EPILOG = """\b
Examples:
  signoff policy explain first-try               every finding of the run
  signoff policy explain first-try 3fa9c0de11b2  one of them
  signoff policy explain 3fa9c0de11b2            the same, in any run
  signoff policy replay first-try --policy stricter.yaml

A policy file has default_behavior, constraint_behaviors and adjudication.approval as in a
flow; whatever it leaves out stays as it was in the run. A whole flow file works too.
"""


@click.group(cls=Group, epilog=_EPILOG)
def policy() -> None:
    """Explain findings, or replay a run with another policy."""


@policy.command()
@click.argument("run", metavar="RUN|FINDING", shell_complete=complete_run)
@click.argument("finding", required=False)
@json_option
@debug_option
def explain(run: str, finding: str | None, as_json: bool) -> None:
    """Show what set the behavior of a finding, or list all.

    FINDING is a finding's id, a prefix of it, or with a RUN an issue's id such as short-001; the
    latest round that has it counts. Without a RUN, the newest one that knows the finding counts.
    """
    from signoff.app.review_queries import find_run_or_finding
    from signoff.flows.policy import explain as use_case
    from signoff.review.finding import blocking_first

    out = output(as_json)
    with open_here() as project:
        row, found = find_run_or_finding(project, run)
        if found is not None:
            finding = found.id
        recorded = recorded_run(project, row.name)
    if finding is None:
        block_on = recorded.config.adjudication.block_on
        findings = sorted(recorded.findings.values(), key=blocking_first(block_on))
        out.json([each.to_json() for each in findings]) if as_json else _list(findings, out)
        return
    explanation = use_case(recorded, finding)
    out.json(explanation.to_json()) if as_json else _print_explanation(explanation, out)


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
    """Replay RUN with another policy, without any call.

    The behavior of every finding is determined again and compared with the recorded one.
    """
    from signoff.flows.policy import replay as use_case

    out = output(as_json)
    with open_here() as project:
        replayed = use_case(recorded_run(project, run), file)
    out.json(replayed.to_json()) if as_json else _print_replay(replayed, out)


@click.command(cls=CliCommand)
@click.argument("flow", required=False, shell_complete=complete_target)
@click.argument("step", required=False)
@click.option(
    "--run",
    "run",
    metavar="NAME",
    shell_complete=complete_run,
    help="Show what this run has sent, in the latest round of each step; only STEP may be named.",
)
@click.option(
    "--round",
    "number",
    metavar="N",
    type=click.IntRange(min=1),
    help="With --run, show another round.",
)
@click.option(
    "--goal",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="The goal of the flow.",
)
@click.option(
    "--write",
    "folder",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Copy the built-in templates to a folder, as a start for your own.",
)
@json_option
@debug_option
def prompts(
    flow: str | None,
    step: str | None,
    run: str | None,
    number: int | None,
    goal: str | None,
    folder: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Show the prompts of a flow, or copy their templates.

    Prints what the steps of FLOW send, or one STEP, with the goal, the constraints and the
    sources filled in. Nothing is sent. Texts in parentheses stand for what a run produces.
    With --run, prints what a run has sent, word for word.

    Examples:
      signoff prompts flow.yaml --goal goal.yaml
      signoff prompts flow.yaml critique
      signoff prompts --run first-try adjudicate
      signoff prompts --run first-try --round 1
      signoff prompts --write prompts    then add `prompts: prompts` to the flow
    """
    out = output(as_json)
    if folder is not None:
        _write_templates(folder, out)
        return
    found = _of_run(run, number, flow, step) if run else _of_flow(flow, step, goal, number)
    if as_json:
        out.json([each.to_json() for each in found])
        return
    for each in found:
        _print_prompt(each, out)
    if not found:
        out.line("no prompts: no agent is asked, or none has been asked yet")


def recorded_run(project: Project, name: str) -> ReviewedRun:
    """Returns a run of a review flow from its journal."""
    from signoff.app.history import events_of
    from signoff.flows.policy import reviewed_run

    row = project.run(name)
    events = (event for _, event in events_of(project, row))
    return reviewed_run(row.name, project.store.description(row.id), events)


def _list(findings: list[Finding], out: Output) -> None:
    if not findings:
        out.line("no findings")
        return
    from signoff.review.finding import group_equal

    rows = [
        (f.id, f.severity.value, f.became.words, f.constraint, _history(f), f"{times}{what}")
        for f, *equal in group_equal(findings)
        for times in [f"{len(equal) + 1:,} times: " if equal else ""]
        for what in [one_line(f.finding, 80)]
    ]
    out.table(("FINDING", "SEVERITY", "STATUS", "CONSTRAINT", "HISTORY", ""), rows)


def _history(finding: Finding) -> str:
    return ", ".join(f"{label.words} in {iteration}" for iteration, label in finding.history)


def _print_explanation(explanation: Explanation, out: Output) -> None:
    from signoff.core.words import FindingStatus
    from signoff.review.adjudication import Pursuit

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
            (
                e.iteration,
                e.step,
                e.issue.finding_id or e.issue.id,
                e.issue.severity.value,
                e.issue.behavior,
                e.now.value,
            )
            for e in changed
        ]
        out.table(("ROUND", "STEP", "FINDING", "SEVERITY", "WAS", "WOULD BE"), rows)
        out.line()
    if replayed.verdicts:
        verdicts = [
            (v.iteration, v.step, v.was.words, v.now.words, ", ".join(v.blocking))
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


def _write_templates(folder: Path, out: Output) -> None:
    from signoff.flows.prompt_files import write_templates

    files = write_templates(folder)
    if out.as_json:
        out.json([str(file) for file in files])
        return
    for file in files:
        out.line(f"wrote {file}")
    out.line(f"delete what you do not change, and add `prompts: {folder}` to the flow")


def _of_flow(
    target: str | None, step: str | None, goal: str | None, number: int | None
) -> Sequence[PromptPreview]:
    from signoff.app.targets import find_workflow
    from signoff.errors import UsageError
    from signoff.flows.prompt_preview import previews_of_flow

    if target is None or number is not None:
        raise click.UsageError("name a flow, a run (--run, with --round) or a folder (--write)")
    options = {"goal": goal} if goal else {}
    workflow = find_workflow(target, Path.cwd(), os.environ, options)
    if workflow.notation != "flows":
        raise UsageError(f"{target} is not a review flow; only review flows have prompt templates")
    return previews_of_flow(workflow, step)


def _of_run(
    name: str, number: int | None, first: str | None, second: str | None
) -> Sequence[SentPrompt]:
    from signoff.app.sent_prompts import sent_prompts

    if first and second:
        raise click.UsageError("--run uses the flow of the run: name only a step")
    with open_here() as project:
        return sent_prompts(project, name, first, number)


def _print_prompt(prompt: PromptPreview | SentPrompt, out: Output) -> None:
    if prompt.system:
        out.line(f"===== {prompt.heading}: system prompt", style="bold")
        out.line(f"{prompt.system}\n")
    out.line(f"===== {prompt.heading}: prompt", style="bold")
    # The prompt of a retry has no line break at its end.
    out.line(f"{str(prompt.prompt).rstrip()}\n")
    if prompt.schema:
        out.line("(sent with a JSON schema for the answer, which --json shows)\n")
