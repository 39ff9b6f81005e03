"""`signoff demo`."""

from __future__ import annotations

import os
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from signoff.app.demo import DEFAULT_FOLDER
from signoff.cli.options import (
    debug_option,
    limit_settings,
    progress_options,
)
from signoff.cli.output import STYLES, DisplayOptions, Output

if TYPE_CHECKING:
    from signoff.app.project import Project
    from signoff.app.show import RunDetails
    from signoff.runtime.ports import Observer
    from signoff.runtime.result import RunResult

_EPILOG = """\b
Examples:
  signoff demo                   on the small local model: no account, no cost
  signoff demo --agent manual    you write, the checks review
  signoff demo --agent claude    on another agent, which may cost money
"""

_SEVERITIES = {"CRITICAL": "red", "HIGH": "red", "MEDIUM": "yellow", "LOW": "dim"}

_NEXT = """
Explore the result, change something, and run it again:
  cd {folder}
  signoff show {name}
  signoff logs {name}
  signoff policy explain {name} {finding}
  signoff run demo --goal goal.yaml

demo_checks.py holds the checks, goal.yaml the text to write, and .signoff/ the flow and
its agents."""


@click.command(epilog=_EPILOG)
@click.option(
    "--folder", type=click.Path(path_type=Path), metavar="DIR",
    default=DEFAULT_FOLDER, show_default=True,
    help="The folder of the demo project; created if it does not exist.",
)  # fmt: skip
@click.option(
    "--agent", metavar="NAME", help="The agent that writes, instead of the small local model."
)
@progress_options
@debug_option
def command(
    folder: Path,
    agent: str | None,
    limits: dict[str, str],
    display: DisplayOptions,
) -> int:
    """Watch a small model write and checks review until the text is approved.

    All files are written to one folder that you can inspect, change and run again. Nothing
    that costs money is called unless you name it with --agent.
    """
    from signoff.app.demo import drive_run, prepare_run
    from signoff.cli.driving import drive

    out = display.out
    if agent is None:
        _require_model(display.may_ask)
    demo = prepare_run(folder.absolute(), os.environ, limit_settings(limits))

    def work(observers: Sequence[Observer]) -> Coroutine[Any, Any, RunResult]:
        return drive_run(demo, agent, observers)

    with demo.project as project:
        _print_intro(out, agent)
        code = drive(project, display, work, workflow=demo.plan.target.workflow)
        if not (out.as_json or out.quiet):
            _print_result(project, demo.name, folder, out)
    return code


def _require_model(may_ask: bool) -> None:
    """Raises what is missing for the local model; downloads the weights if the user agrees."""
    from signoff._extras import install_command
    from signoff.app.demo import what_is_missing
    from signoff.errors import UsageError

    runner, weights = what_is_missing(os.environ)
    if weights and not runner and may_ask and _confirm_download():
        from signoff.cli.commands.models import pull

        click.get_current_context().invoke(pull, model=None, as_json=False)
        return
    steps = [install_command("local")] if runner else []
    steps += ["signoff models pull"] if weights else []
    if steps:
        raise UsageError(
            f"the demo's small model is not installed; to install it, run: {' && '.join(steps)}; "
            "to use another agent, run: signoff demo --agent NAME"
        )


def _confirm_download() -> bool:
    question = "The demo's small model is not installed yet. Download it (93 MB)?"
    return click.confirm(question, default=True, err=True)


def _print_intro(out: Output, agent: str | None) -> None:
    who = agent or "A small model on this machine"
    out.note(f"{who} writes an announcement, four checks review it, the rules decide.\n")


def _print_result(project: Project, name: str, folder: Path, out: Output) -> None:
    """Prints all versions of the text, and what to do next."""
    from signoff.app.show import show
    from signoff.core.outcome import Status
    from signoff.errors import UnknownName

    try:
        report = show(project, name)
    except UnknownName:
        return  # stopped before there was a run
    approved = report.row.status is Status.COMPLETED
    _show_versions(report, approved, out)
    if approved:
        run_folder = folder / report.folder.relative_to(project.home.root)
        out.line()
        out.line(f"  artifact  {run_folder / 'final' / 'artifact.md'}")
        out.line(f"  history   {run_folder}")
    findings = report.notation_report.facts.get("findings") if report.notation_report else None
    if not approved:
        out.note(f"\nRun these commands in the demo's folder: cd {folder}")
    elif findings:
        out.note(_NEXT.format(folder=folder, name=name, finding=findings[0]["id"]))


def _show_versions(report: RunDetails, approved: bool, out: Output) -> None:
    from signoff.app.demo import versions

    versions_read = versions(report)
    for number, version in enumerate(versions_read, 1):
        out.line()
        if number > 1:
            how = (
                "fixed by exact edits, without an agent call"
                if version.by_edits
                else "rewritten by the agent"
            )
            out.line(f"     {how}:", style="dim")
        out.prose(f"  {number}  {' '.join(version.text.split())}", hang="     ")
        for finding in version.findings:
            severity = finding["severity"]
            out.line(f"     {severity:<8} {finding['finding']}", style=_SEVERITIES[severity])
        if approved and number == len(versions_read):
            out.line("     approved: no open findings", STYLES["completed"])
