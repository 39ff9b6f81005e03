"""`signoff run`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from signoff.app.project import Project
from signoff.app.readiness import describe, refuse_not_ready
from signoff.app.resume import FROM_OUTSIDE
from signoff.app.start import StartPlan, plan, plan_again, start
from signoff.app.trust import trust_target
from signoff.cli import exits
from signoff.cli.driving import drive
from signoff.cli.options import (
    CliCommand,
    complete_run,
    complete_target,
    inputs,
    limit_settings,
    notation_options,
    progress_options,
    project_dir_option,
    replaced_agents,
    set_up_logging,
)
from signoff.cli.output import DisplayOptions, Output
from signoff.core import graph
from signoff.core.events import ANY_AGENT
from signoff.errors import ConfigError


@click.command(cls=CliCommand)
@click.argument("target", required=False, shell_complete=complete_target)
@click.option("--again", metavar="RUN", shell_complete=complete_run,
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
@project_dir_option
@notation_options("run")
@progress_options
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
    params = inputs(values)
    if (target is None) == (again is None):
        raise click.UsageError("name a target, or a run with --again")
    make_plan = plan if again is None else plan_again
    planned = make_plan(
        Path.cwd(),
        os.environ,
        again or target or "",
        params,
        # Starting a run checks the name itself.
        name=name if dry_run else None,
        command_line=limit_settings(limits),
        options=options,
        agent=next((each for each in reversed(agents) if "=" not in each), ""),
    )
    _warn(planned, out, dry_run=dry_run)
    pull = pull or ANY_AGENT in planned.switch
    switch = {**planned.switch, **_replacements(agents, planned, out)}
    params = params if again is None else dict(planned.params)
    if dry_run:
        return _show_dry_run(planned, out, {**switch, **(FROM_OUTSIDE if pull else {})})
    if not pull and not detach:
        refuse_not_ready(planned.not_ready(switch))
    set_up_logging(planned.settings)
    trust_target(planned.home, planned.settings, Path.cwd(), target or "")
    with planned.open(Path.cwd(), os.environ) as project:
        if detach:
            from signoff.cli.detach import start_detached

            detached = {"name": name, "switch": switch, "labels": labels}
            return start_detached(project, planned, detached, out)
        run_options: dict[str, Any] = {"name": name, "limits": planned.own_limits}
        if pull:
            return _start_pulled(project, planned, params, display, run_options)
        return drive(
            project,
            display,
            lambda watchers: start(
                project, planned.target, params, switch=switch, observers=watchers, **run_options
            ),
            workflow=planned.target.workflow,
        )


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


def _start_pulled(
    project: Project,
    planned: StartPlan,
    params: dict[str, Any],
    display: DisplayOptions,
    run_options: dict[str, Any],
) -> int:
    # Only runs for external workers need what hands out work.
    from signoff.app.external_work import start_pulled
    from signoff.cli.external_work import drive_external

    status = drive_external(
        display.out,
        lambda watchers: start_pulled(
            project, planned.target, params, observers=watchers, **run_options
        ),
        events=display.events,
    )
    return exits.exit_code(status.row.status) if status is not None else exits.INTERRUPTED


def _replacements(agents: Sequence[str], planned: StartPlan, out: Output) -> dict[str, str]:
    """Returns the agents to replace; one without `=` is used where no agent is named.

    A workflow in Python names its agents in code, so there it replaces the default agent.
    """
    named = replaced_agents(agents)
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
