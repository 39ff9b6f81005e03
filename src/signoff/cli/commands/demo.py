"""`signoff demo`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from signoff._extras import install_command
from signoff.app.demo import DEFAULT_FOLDER, drive_run, prepare_run, versions, what_is_missing
from signoff.app.project import Project
from signoff.app.show import RunDetails, show
from signoff.cli.commands.models import pull
from signoff.cli.driving import drive
from signoff.cli.options import CliCommand, limit_settings, progress_options
from signoff.cli.output import STYLES, DisplayOptions, Output
from signoff.core.outcome import Status
from signoff.core.severity import IssueBehavior, Severity
from signoff.errors import UnknownName, UsageError

_NEXT = """
Explore the result, change something, and run it again:
  cd {folder}
  signoff show {name}
  signoff logs {name}
  signoff policy explain {name} {finding}
  signoff run demo --goal goal.yaml

demo_checks.py holds the checks, goal.yaml the text to write, and .signoff/ the flow and
its agents."""


@click.command(cls=CliCommand)
@click.option("--folder", type=click.Path(path_type=Path), metavar="DIR",
              default=DEFAULT_FOLDER, show_default=True,
              help="The folder of the demo project; created if it does not exist.")  # fmt: skip
@click.option("--agent", metavar="NAME",
              help="The agent that writes, instead of the small local model.")  # fmt: skip
@progress_options
def command(
    folder: Path, agent: str | None, limits: dict[str, str], display: DisplayOptions
) -> int:
    """Watch a small model write and checks review until the text is approved.

    All files are written to one folder that you can inspect, change and run again. Nothing
    that costs money is called unless you name it with --agent.

    Examples:
      signoff demo                   on the small local model: no account, no cost
      signoff demo --agent manual    you write, the checks review
      signoff demo --agent claude    on another agent, which may cost money
    """
    out = display.out
    if agent is None:
        _require_model(display.may_ask)
    demo = prepare_run(folder.absolute(), os.environ, limit_settings(limits))
    with demo.project as project:
        who = agent or "A small model on this machine"
        out.note(f"{who} writes an announcement, four checks review it, the rules decide.\n")
        code = drive(
            project,
            display,
            lambda observers: drive_run(demo, agent, observers),
            workflow=demo.plan.target.workflow,
        )
        if not (out.as_json or out.quiet):
            _print_result(project, demo.name, folder, out)
    return code


def _require_model(may_ask: bool) -> None:
    """Raises what is missing for the local model; downloads the weights if the user agrees."""
    runner, weights = what_is_missing(os.environ)
    if weights and not runner and may_ask:
        question = "The demo's small model is not installed yet. Download it (93 MB)?"
        if click.confirm(question, default=True, err=True):
            click.get_current_context().invoke(pull, model=None, as_json=False)
            return
    steps = [install_command("local")] if runner else []
    steps += ["signoff models pull"] if weights else []
    if steps:
        raise UsageError(
            f"the demo's small model is not installed; to install it, run: {' && '.join(steps)}; "
            "to use another agent, run: signoff demo --agent NAME"
        )


def _print_result(project: Project, name: str, folder: Path, out: Output) -> None:
    """Prints all versions of the text, and what to do next."""
    try:
        report = show(project, name)
    except UnknownName:
        return  # stopped before there was a run
    approved = report.row.status is Status.COMPLETED
    _show_versions(report, approved, out)
    if not approved:
        out.note(f"\nRun these commands in the demo's folder: cd {folder}")
        return
    run_folder = folder / report.folder.relative_to(project.home.root)
    out.line()
    out.line(f"  artifact  {run_folder / 'final' / 'artifact.md'}")
    out.line(f"  history   {run_folder}")
    findings = report.notation_report.facts.get("findings") if report.notation_report else None
    if findings:
        out.note(_NEXT.format(folder=folder, name=name, finding=findings[0]["id"]))


def _show_versions(report: RunDetails, approved: bool, out: Output) -> None:
    for number, version in enumerate(versions(report), 1):
        out.line()
        if number > 1:
            edited = "fixed by exact edits, without an agent call"
            how = edited if version.by_edits else "rewritten by the agent"
            out.line(f"     {how}:", style="dim")
        out.prose(f"  {number}  {' '.join(version.text.split())}", hang="     ")
        for finding in version.findings:
            severity = Severity.read(finding["severity"])
            out.line(f"     {severity:<8} {finding['finding']}", style=_style(severity))
    if approved:
        out.line("     approved: no open findings", STYLES["completed"])


def _style(severity: Severity) -> str:
    if severity.defaults.blocks:
        return "red"
    return "dim" if severity.defaults.behavior is IssueBehavior.IGNORE else "yellow"
