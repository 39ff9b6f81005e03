"""Resumes runs: one by name, or all parked ones that are due."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from signoff.agents.kinds import MANUAL
from signoff.app.answering import record_file_answers
from signoff.app.history import load_state
from signoff.app.project import Project
from signoff.app.run_files import Warn, catch_up
from signoff.app.start import asks_of, with_roles
from signoff.app.worker_token import refuse_worker
from signoff.core.events import ANY_AGENT
from signoff.core.outcome import FINAL, Status
from signoff.core.spend import Limits
from signoff.core.stop_reason import error_of
from signoff.core.workflow import Workflow
from signoff.errors import SignoffError
from signoff.runtime.engine import RunChanges
from signoff.runtime.ports import Observer
from signoff.runtime.result import RunResult
from signoff.runtime.store_port import RunRow

FROM_OUTSIDE = {ANY_AGENT: MANUAL}
"""The agent switch of a run whose work is done by external workers."""

DUE = (Status.PARKED, Status.WAITING)
"""A waiting run is due once a deadline has passed: then its default answer counts."""


@dataclass(frozen=True)
class Resumed:
    """The result of resuming one of several runs."""

    run: str
    result: RunResult | None
    error: SignoffError | None = None


async def resume(
    project: Project,
    name: str | None = None,
    *,
    limits: Limits | None = None,
    adopt: bool = False,
    target: str | None = None,
    switch: Mapping[str, str] | None = None,
    params: Mapping[str, Any] | None = None,
    observers: Sequence[Observer] = (),
    warn: Warn = lambda _warning: None,
) -> RunResult:
    """Resumes a run; answer files in its folder are recorded first.

    `switch` maps agents to their replacements from now on; `params` corrects parameters.
    """
    changes = RunChanges(limits, adopt, switch or {}, params or {})
    if changes.are_decisions or target is not None:
        refuse_worker(project, "change how a run continues")
    row = project.run(name)
    if row.status in FINAL:
        # The engine will not run again, so missing files of the run directory are written here.
        catch_up(project, row.name, warn)
    workflow = prepare(project, row, target, warn)
    switches = _with_roles(project, row, changes.switch, workflow, warn)
    async with project.engine(observers) as engine:
        return await engine.resume(
            row.name, workflow, limits=limits, adopt=adopt, switch=switches, params=params
        )


async def change(
    project: Project, row: RunRow, changes: RunChanges, warn: Warn = lambda _warning: None
) -> None:
    """Records how a run is to continue, for the process that resumes it."""
    if not (changes.are_decisions or changes.limits):
        return
    if changes.are_decisions:
        refuse_worker(project, "change how a run continues")
    workflow = project.find_again(row).workflow
    switches = _with_roles(project, row, changes.switch, workflow, warn)
    async with project.engine() as engine:
        await engine.change(row.name, workflow, replace(changes, switch=switches))


def due_runs(project: Project) -> list[RunRow]:
    """Returns the runs that are due, the longest overdue first."""
    rows = project.store.rows(status=DUE, due_before=project.clock.now())
    return sorted(rows, key=lambda row: row.due_at or 0.0)


async def resume_due(
    project: Project,
    *,
    limits: Limits | None = None,
    observers: Sequence[Observer] = (),
    warn: Warn = lambda _warning: None,
) -> list[Resumed]:
    """Resumes all due runs; an error in one does not stop the others."""
    async with project.engine(observers) as engine:

        async def one(row: RunRow) -> Resumed:
            try:
                workflow = prepare(project, row, None, warn)
                return Resumed(row.name, await engine.resume(row.name, workflow, limits=limits))
            except SignoffError as error:
                return Resumed(row.name, None, error)

        return list(await asyncio.gather(*(one(row) for row in due_runs(project))))


def _with_roles(
    project: Project,
    row: RunRow,
    switch: Mapping[str, str],
    workflow: Workflow,
    warn: Warn,
) -> dict[str, str]:
    """Returns the switches, extended by the roles that each switched agent plays.

    Raises `ConfigError` if an agent would have to do what its kind cannot, such as writing.
    """
    if not switch:
        return {}
    from signoff.app.agents import known_agents
    from signoff.app.readiness import refuse_unfit

    roles = {**project.default_roles, **project.settings.roles}
    known = {*known_agents(project.settings.agents), *project.agents, *roles, *workflow.agents}
    asked = asks_of(workflow, load_state(project, row).params)
    replaced = [each._replace(agent=switch[each.agent]) for each in asked if each.agent in switch]
    refuse_unfit(project.settings.agents, replaced)
    for agent in switch:
        if agent not in {*known, ANY_AGENT} and agent != _failed_agent(project, row):
            warn(f"unknown agent or role {agent!r}; only steps that name it are switched")
    return with_roles(switch, roles)


def _failed_agent(project: Project, row: RunRow) -> str:
    """Returns the agent whose error stopped the run: a workflow may ask one no settings name."""
    state = load_state(project, row)
    error = error_of(state.status, state.stop_reason)
    return error.agent if error is not None else ""


def prepare(project: Project, row: RunRow, target: str | None, warn: Warn) -> Workflow:
    """Finds a run's workflow, then records its answer files.

    The order matters: a file is used only once, so a missing workflow must be reported first.
    """
    found = project.find(target, row) if target is not None else project.find_again(row)
    for warning in record_file_answers(project, row.name):
        warn(warning)
    return found.workflow
