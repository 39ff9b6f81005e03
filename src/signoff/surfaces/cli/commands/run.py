"""`signoff run` and `signoff resume`, on the terminal or by a worker; and `signoff cancel`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from signoff.app.runs import start
from signoff.app.runs.history import timeline_of
from signoff.app.runs.next_commands import error_message, next_command
from signoff.app.runs.run_records import living_workers, worker_for
from signoff.app.runs.runs import cancel, catch_up
from signoff.app.runs.show import show
from signoff.app.runs.start import StartPlan
from signoff.app.settings.agents import describe, refuse_not_ready
from signoff.app.settings.project import Project
from signoff.app.settings.settings import command_line_limits
from signoff.app.settings.trust import trust_target
from signoff.app.workers.hand_over import AGENT, ensure_worker, hand_over, wake
from signoff.core import graph
from signoff.core.errors import ConfigError, RunBusy
from signoff.core.events import ANY_AGENT
from signoff.core.outcome import FINAL, Status
from signoff.core.remedies import StartWorker, WatchRun
from signoff.runtime.engine import RunChanges
from signoff.surfaces.cli import exits
from signoff.surfaces.cli import options as cli
from signoff.surfaces.cli.driving import choose_view, drive_new, drive_resume, events_file, finish
from signoff.surfaces.cli.output import DisplayOptions, Output
from signoff.surfaces.cli.summary import print_end, print_summary, report_to_json
from signoff.surfaces.cli.views import Interrupted, run_interruptibly


@click.command(cls=cli.CliCommand)
@click.argument("target", required=False, type=click.Path())
@click.option("--again", metavar="RUN", shell_complete=cli.complete_run,
              help="Start a new run like RUN: same target, parameters, options, agents and limits.",
)  # fmt: skip
@click.option("-i", "--input", "values", multiple=True, metavar="KEY=VALUE",
              help="A parameter of the workflow; KEY:=JSON for lists and other values. Repeatable.",
)  # fmt: skip
@click.option("--name", metavar="NAME", help="A name for the run; must be new.")
@click.option("--dry-run", is_flag=True,
              help="Check everything and show the plan, but start nothing.")  # fmt: skip
@click.option("--agent", "agents", multiple=True, metavar="[NAME=]OTHER",
              help="Use agent OTHER (or `manual`: you) where none is named, or instead of NAME. "
              "Repeatable.")  # fmt: skip
@click.option("--pull", is_flag=True,
              help="Hand agent work to external workers (`signoff next`, `submit`).")  # fmt: skip
@click.option("--detach", is_flag=True,
              help="Hand the run to a worker and return at once.")  # fmt: skip
@click.option("--needs", "labels", multiple=True, metavar="NAME",
              help="With --detach: only a worker with this capability. Repeatable.")  # fmt: skip
@cli.project_dir_option
@cli.notation_options("run")
@cli.progress_options
def command(
    target: str | None,
    again: str | None,
    values: tuple[str, ...],
    name: str | None,
    options: dict[str, Any],
    agents: tuple[str, ...],
    pull: bool,
    detach: bool,
    labels: tuple[str, ...],
    dry_run: bool,
    limits: dict[str, str],
    display: DisplayOptions,
) -> int:
    """Start a run of TARGET and drive it to its end or its next wait.

    TARGET is a flow file (flow.yaml), a Python file (flow.py, flow.py:NAME), a module
    (package.module:NAME), a skill (`signoff skill list`), or the name of a workflow in
    .signoff/flows/ or in a folder or module listed in the settings.

    Examples:
      signoff run flow.yaml --goal goal.yaml --name first-draft
      signoff run flow.py -i topic="a better mousetrap" -i tags:='["a", "b"]'
      signoff run package.module:NAME --name first-try --limit usd=5
      signoff run review --json --no-input && deploy
      signoff run flow.yaml --goal goal.yaml --detach
      signoff run book.py --pull --name book    for external workers: signoff next
      signoff run decision-critic --pull    follow a skill: signoff submit
      signoff run --again first-draft -i topic=tea

    A waiting run asks on the terminal; without one it exits with 10 and prints the command
    that answers. With `--detach` a worker drives the run in the background (one is started if
    none is running), and exit code 0 means only that the run was queued. With `--pull` it prints
    the first work, and exits with 10 as well, because the run is not completed. `run` always
    starts a new run; `signoff resume` continues one.
    """
    out = display.out
    _check_options(pull=pull, detach=detach, labels=labels, agents=agents)
    params = cli.inputs(values)
    if (target is None) == (again is None):
        raise click.UsageError("name a target, or a run with --again")
    make_plan = start.plan if again is None else start.plan_again
    planned = make_plan(
        Path.cwd(),
        os.environ,
        again or target or "",
        params,
        # Starting a run checks the name itself.
        name=name if dry_run else None,
        command_line=cli.limit_settings(limits),
        options=options,
        agent=next((each for each in reversed(agents) if "=" not in each), ""),
    )
    _warn(planned, out, dry_run=dry_run)
    pull = pull or ANY_AGENT in planned.switch
    switch = {**planned.switch, **_replacements(agents, planned, out)}
    params = params if again is None else dict(planned.params)
    if dry_run:
        return _show_dry_run(planned, out, {**switch, **(start.FROM_OUTSIDE if pull else {})})
    # External workers answer for the agents of a pulled run, and a worker may have agents that this
    # machine lacks.
    if not pull and not detach:
        refuse_not_ready(planned.not_ready(switch))
    cli.set_up_logging(planned.settings)
    trust_target(planned.home, planned.settings, Path.cwd(), target or "")
    with planned.open(Path.cwd(), os.environ) as project:
        if detach:
            detached = {"name": name, "switch": switch, "labels": labels}
            return start_detached(project, planned, detached, out)
        if pull:
            # Only runs for external workers need what hands out work.
            from signoff.app.people.external_work import start_pulled
            from signoff.surfaces.cli.commands.next import drive_external

            given = {"name": name, "limits": planned.own_limits}
            status = drive_external(
                out,
                lambda seen: start_pulled(project, planned.target, params, observers=seen, **given),
                events=display.events,
            )
            return exits.INTERRUPTED if status is None else exits.exit_code(status.row.status)
        return drive_new(project, planned, display, params, switch=switch, name=name)


def _warn(planned: StartPlan, out: Output, *, dry_run: bool) -> None:
    if dry_run and planned.warnings:
        # A run may still succeed, if it never asks these agents. A plan with them is not valid.
        raise ConfigError("\n".join(planned.warnings))
    target = planned.target
    for warning in (*target.problems, *planned.warnings, *target.workflow.warnings):
        out.warn(str(warning))


def _check_options(
    *, pull: bool, detach: bool, labels: tuple[str, ...], agents: tuple[str, ...]
) -> None:
    if pull and agents:
        raise click.UsageError("--pull hands out the work of every agent; leave out --agent")
    if pull and detach:
        raise click.UsageError("--detach cannot be combined with --pull")
    if labels and not detach:
        raise click.UsageError("--needs requires --detach")


def _replacements(agents: Sequence[str], planned: StartPlan, out: Output) -> dict[str, str]:
    """Returns the agents to replace; one without `=` is used where no agent is named.

    A workflow in Python names its agents in code, so there it replaces the default agent.
    """
    named = cli.replaced_agents(agents)
    if planned.asks_chosen_agent:
        named.pop("", None)
    switch = planned.replacements(named)
    for name in planned.replaced_for_nothing(named):
        out.warn(f"--agent {name}={named[name]} has no effect: this run does not ask {name}")
    return switch


def _show_dry_run(planned: StartPlan, out: Output, switch: Mapping[str, str]) -> int:
    not_ready = planned.not_ready(switch)
    if out.as_json:
        reasons = {name: describe(each) for name, each in not_ready.items()}
        out.json({**planned.to_json(), "not_ready": reasons})
        return exits.USAGE if not_ready else exits.OK
    _show_plan(planned, out)
    refuse_not_ready(not_ready)
    out.line("Plan is valid. Nothing was started.")
    return exits.OK


def _show_plan(planned: StartPlan, out: Output) -> None:
    out.line(graph.text(planned.target.workflow).rstrip("\n"))
    out.line()
    dry_run = planned.dry_run()
    if dry_run is not None:
        out.table(dry_run.columns, dry_run.rows)
        for warning in dry_run.warnings:
            out.warn(warning)
        for note in dry_run.notes:
            out.prose(note, hang="  ")
        out.line()
    for name, value in planned.params.items():
        out.line(f"{name} = {value!r}")
    limits = ", ".join(f"{name} {value:g}" for name, value in planned.limits.to_json().items())
    out.line(f"limits: {limits or 'none'}")


@click.command(cls=cli.CliCommand)
@cli.run_argument
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
@cli.progress_options
def resume_command(
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
    switch = cli.pairs(agents, "--agent") | (start.FROM_OUTSIDE if pull else {})
    display = replace(display, no_input=display.no_input or pull)
    with cli.open_here(limits=limits, drives=True) as project:
        if due:
            return _resume_due(project, display)
        if detach:
            changes = RunChanges(
                command_line_limits(project.settings), adopt, switch, cli.inputs(values)
            )
            return resume_detached(project, run, changes, display.out)
        return drive_resume(
            project,
            display,
            project.run(run),
            target=target,
            adopt=adopt,
            switch=switch,
            params=cli.inputs(values),
        )


def _resume_due(project: Project, display: DisplayOptions) -> int:
    out = display.out
    history = {row.name: timeline_of(project, row) for row in start.due_runs(project)}
    view = choose_view(out, history=history, several=True)
    with events_file(display.events) as watchers, view:
        try:
            resumed = run_interruptibly(
                start.resume_due(
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


def start_detached(
    project: Project, planned: StartPlan, options: Mapping[str, Any], out: Output
) -> int:
    """Queues a new run, and starts a worker if there is none; `options` are those of the use case.

    Where each host has its own agents, a worker with the right ones may be elsewhere.
    """
    if project.store.local_file() is not None:
        refuse_not_ready(planned.not_ready(options["switch"]))
    return report_queued(project, hand_over(project, planned, **options).name, out)


def resume_detached(project: Project, run: str | None, changes: RunChanges, out: Output) -> int:
    """Queues a run that rests, with changes, and starts a worker if there is none."""
    row = project.run(run)
    if row.status in FINAL:
        return finish(show(project, row.name), out)
    asyncio.run(start.change(project, row, changes, out.warn))
    queued = wake(project, row.name)
    if queued.status is Status.QUEUED:
        return report_queued(project, row.name, out)
    raise RunBusy(f"run {row.name!r} is being driven already", remedy=WatchRun(row.name))


def report_queued(project: Project, run: str, out: Output) -> int:
    """Makes sure that there is a worker for a queued run; prints the run and how to follow it."""
    ensure_worker(project)
    if out.as_json:
        out.json(report_to_json(show(project, run)))
        return exits.OK
    # The name alone on stdout, for scripts.
    out.line(run)
    out.note(f"queued for a worker; follow it: signoff logs -f {run}")
    out.note(f"look: signoff show {run}")
    if project.store.local_file() is None:
        _warn_without_worker(project, run, out)
    return exits.OK


def _warn_without_worker(project: Project, run: str, out: Output) -> None:
    if not living_workers(project.store):
        out.warn("no worker is running on this database; start one: signoff worker")
        return
    missing = worker_for(project.store, project.store.row(run)).missing
    # Workers check agents only when a run needs them, so these may be ready in a moment.
    lasting = tuple(each for each in missing if not each.startswith(AGENT))
    if lasting:
        out.warn(f"no worker has {', '.join(lasting)}; {next_command(StartWorker(lasting))}")


@cli.command()
@cli.run_argument
@click.option("--why", default="", help="The reason, which is recorded.")
def cancel_command(run: str | None, why: str, out: Output) -> int:
    """Cancel RUN (default: the latest run).

    If another process drives the run, this command waits for it to stop: when it returns,
    no program or call of the run is active.

    Examples:
      signoff cancel first-try --why "wrong input"
    """
    with cli.open_here() as project:
        again = project.run(run).status is Status.CANCELLED
        name, status = asyncio.run(cancel(project, run, why))
        catch_up(project, name, out.warn)
        report = show(project, name)
    document = {"run": name, "status": status.value, "result": report.result}
    out.show(document, f"{'already ' if again else ''}{status.value}  {name}")
    if not out.as_json:
        print_end(report, out)
    return exits.OK if status is Status.CANCELLED else exits.ERROR
