"""`signoff run`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from signoff.cli.options import (
    complete_target,
    debug_option,
    inputs,
    limit_settings,
    notation_options,
    output,
    progress_options,
    set_up_logging,
)
from signoff.cli.output import DisplayOptions

if TYPE_CHECKING:
    from signoff.app.project import Project
    from signoff.app.start import StartPlan
    from signoff.runtime.ports import Observer

_EPILOG = """\b
Examples:
  signoff run flow.yaml --goal goal.yaml --name first-draft
  signoff run flow.py -i topic="a better mousetrap" -i tags:='["a", "b"]'
  signoff run package.module:NAME --name first-try --limit usd=5
  signoff run review --json --no-input && deploy
  signoff run book.py --pull --name book    for external workers: signoff next

A waiting run asks on the terminal; without one it exits with 10 and prints the command
that answers. `run` always starts a new run; `signoff resume` continues one.
"""


@click.command(epilog=_EPILOG)
@click.argument("target", shell_complete=complete_target)
@click.option(
    "-i", "--input", "given", multiple=True, metavar="KEY=VALUE",
    help="A parameter of the workflow; KEY:=JSON for lists and other values. Repeatable.",
)  # fmt: skip
@click.option("--name", metavar="NAME", help="A name for the run; must be new.")
@click.option(
    "--dry-run", is_flag=True, help="Check everything and show the plan, but start nothing."
)
@click.option("--pull", is_flag=True,
              help="Hand agent work to external workers (`signoff next`, `submit`).")  # fmt: skip
@notation_options("run")
@progress_options
@debug_option
def command(
    target: str,
    given: tuple[str, ...],
    name: str | None,
    options: dict[str, Any],
    pull: bool,
    dry_run: bool,
    limits: dict[str, str],
    display: DisplayOptions,
) -> int:
    """Start a run of TARGET and drive it to its end or its next wait.

    TARGET is a flow file (flow.yaml), a Python file (flow.py, flow.py:NAME), a module
    (package.module:NAME) or the name of a workflow in .signoff/flows/ or in a place listed in
    the settings.
    """
    from signoff.app.start import plan, start
    from signoff.cli.driving import drive

    out = display.out
    params = inputs(given)
    planned = plan(
        Path.cwd(),
        os.environ,
        target,
        params,
        # Starting a run checks the name itself.
        name=name if dry_run else None,
        command_line=limit_settings(limits),
        options=options,
    )
    for problem in planned.target.problems:
        out.warn(str(problem))
    for warning in (*planned.warnings, *planned.target.workflow.warnings):
        out.warn(warning)
    if dry_run:
        if out.as_json:
            out.json(planned.to_json())
        else:
            _show_plan(planned)
        return 0
    set_up_logging(planned.settings.log_level)
    with planned.open(Path.cwd(), os.environ) as project:
        if pull:
            return _pulled(project, planned, params, name, display)
        return drive(
            project,
            display,
            lambda observers: start(
                project,
                planned.target,
                params,
                name=name,
                limits=planned.own_limits,
                observers=observers,
            ),
            workflow=planned.target.workflow,
        )


def _pulled(
    project: Project,
    planned: StartPlan,
    params: dict[str, Any],
    name: str | None,
    display: DisplayOptions,
) -> int:
    from signoff.app.external_work import RunStatus, run_status
    from signoff.app.resume import FROM_OUTSIDE
    from signoff.app.start import start
    from signoff.cli import exits
    from signoff.cli.external_work import drive_external

    async def work(observers: Sequence[Observer]) -> RunStatus:
        result = await start(
            project, planned.target, params,
            name=name, limits=planned.own_limits, switch=FROM_OUTSIDE, observers=observers,
        )  # fmt: skip
        return run_status(project, result.run)

    status = drive_external(display.out, work, events=display.events)
    code = exits.exit_code(status.row.status) if status is not None else None
    return exits.INTERRUPTED if code is None else code


def _show_plan(planned: StartPlan) -> None:
    from signoff.core import graph

    out = output()
    out.line(graph.text(planned.target.workflow).rstrip("\n"))
    out.line()
    dry_run = planned.dry_run()
    if dry_run is not None:
        out.table(dry_run.columns, dry_run.rows)
        for note in dry_run.notes:
            out.prose(note, hang="  ")
        out.line()
    for name, value in planned.params.items():
        out.line(f"{name} = {value!r}")
    limits = ", ".join(f"{name} {value:g}" for name, value in planned.limits.to_json().items())
    out.line(f"limits: {limits or 'none'}")
    out.line("Plan is valid. Nothing was started.")
