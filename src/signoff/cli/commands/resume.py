"""`signoff resume`."""

from __future__ import annotations

from dataclasses import replace

import click

from signoff.app.history import timeline_of
from signoff.app.next_commands import error_message
from signoff.app.project import Project
from signoff.app.settings import command_line_limits
from signoff.app.show import show
from signoff.app.start import FROM_OUTSIDE, due_runs, resume_due
from signoff.cli import exits
from signoff.cli.detach import resume_detached
from signoff.cli.driving import choose_view, drive_resume, events_file
from signoff.cli.interrupts import Interrupted, run_interruptibly
from signoff.cli.options import CliCommand, inputs, open_here, pairs, progress_options, run_argument
from signoff.cli.output import DisplayOptions
from signoff.cli.summary import print_summary, report_to_json
from signoff.runtime.engine import RunChanges


@click.command(cls=CliCommand)
@run_argument
@click.option("--due", is_flag=True, help="Resume all runs that are due.")
@click.option("--adopt", is_flag=True, help="Adopt the changed workflow definition.")
@click.option("--target", metavar="TARGET", help="The workflow's new location, if it has moved.")
@click.option("--agent", "agents", multiple=True, metavar="NAME=OTHER",
              help="Use agent OTHER (or `manual`: you) instead of NAME from now on. Repeatable.",
)  # fmt: skip
@click.option("-i", "--input", "values", multiple=True, metavar="KEY=VALUE",
              help="Correct a parameter that no finished step has used. Repeatable.")  # fmt: skip
@click.option("--pull", is_flag=True,
              help="Hand all further work to external workers (`signoff next RUN`).")  # fmt: skip
@click.option("--detach", is_flag=True,
              help="Hand the run to a worker and return at once.")  # fmt: skip
@progress_options
def command(
    run: str | None,
    due: bool,
    adopt: bool,
    target: str | None,
    agents: tuple[str, ...],
    values: tuple[str, ...],
    pull: bool,
    detach: bool,
    limits: dict[str, str],
    display: DisplayOptions,
) -> int:
    """Resume RUN (default: the latest run).

    Finished work is not repeated and not paid for again. Answer files in the run's hitl/
    folder are used first. For a run that has ended, its result is shown.

    Examples:
      signoff resume                     the latest run
      signoff resume first-try --limit usd=10
      signoff resume first-try --adopt   with a changed workflow
      signoff resume first-try --agent writer=manual --agent critic=codex
      signoff resume first-try --detach  in the background
      signoff resume --due               all parked runs that are due
    """
    if due and (run or adopt or target or agents or values or pull or detach):
        raise click.UsageError(
            "--due resumes all runs that are due; it cannot be combined with RUN, --adopt, "
            "--agent, --detach, --input, --pull or --target"
        )
    if detach and (pull or target):
        raise click.UsageError("--detach cannot be combined with --pull or --target")
    switch = pairs(agents, "--agent") | (FROM_OUTSIDE if pull else {})
    display = replace(display, no_input=display.no_input or pull)
    with open_here(limits=limits, drives=True) as project:
        if due:
            return _resume_due(project, display)
        if detach:
            changes = RunChanges(
                command_line_limits(project.settings), adopt, switch, inputs(values)
            )
            return resume_detached(project, run, changes, display.out)
        return drive_resume(
            project,
            display,
            project.run(run),
            target=target,
            adopt=adopt,
            switch=switch,
            params=inputs(values),
        )


def _resume_due(project: Project, display: DisplayOptions) -> int:
    out = display.out
    history = {row.name: timeline_of(project, row) for row in due_runs(project)}
    view = choose_view(out, history=history, several=True)
    with events_file(display.events) as watchers, view:
        try:
            resumed = run_interruptibly(
                resume_due(
                    project,
                    limits=command_line_limits(project.settings),
                    observers=[view, *watchers],
                    warn=out.warn,
                ),
                view,
            )
        except Interrupted:
            return exits.INTERRUPTED
    reports = [show(project, each.run) for each in resumed if each.error is None]
    if out.as_json:
        out.json([report_to_json(report) for report in reports])
    else:
        for report in reports:
            print_summary(report, out)
        if not resumed:
            out.line("no runs are due")
    codes = [exits.OF_STATUS.get(report.row.status, exits.OK) for report in reports]
    for each in resumed:
        if each.error is not None:
            out.warn(f"{each.run}: {error_message(each.error)}")
            codes.append(exits.code_of_error(each.error))
    return exits.code_of_several(codes)
