"""Lets runs go on: one by name, or all that were parked and are now due."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from signoff.agents.kinds import MANUAL
from signoff.app.file_answers import take_file_answers
from signoff.app.history import folded
from signoff.app.project import Project
from signoff.app.run_files import Warn, catch_up
from signoff.core.events import ANY_AGENT
from signoff.core.outcome import FINAL, Status
from signoff.core.spend import Limits
from signoff.core.stop_reason import error_of
from signoff.core.workflow import Workflow
from signoff.errors import SignoffError
from signoff.runtime.ports import Observer
from signoff.runtime.result import RunResult
from signoff.runtime.store_port import RunRow

FROM_OUTSIDE = {ANY_AGENT: MANUAL}
"""Who stands in for whom in a run that is played from outside."""

DUE = (Status.PARKED, Status.WAITING)
"""A waiting run is due when a deadline has passed: its default answer is taken."""


@dataclass(frozen=True)
class Resumed:
    """What came of one of several runs."""

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
    """Drives a run on; answers that lie in its folder as files are taken first.

    `switch` names agents that others stand in for from here on; `params` corrects parameters.
    """
    row = project.run(name)
    if row.status in FINAL:
        # Nothing will happen any more, so no engine writes what may be missing.
        catch_up(project, row.name, warn)
    workflow = _ready(project, row, target, warn)
    wide = _also_by_role(project, row, switch or {}, warn)
    async with project.engine(observers) as engine:
        return await engine.resume(
            row.name, workflow, limits=limits, adopt=adopt, switch=wide, params=params
        )


def due_runs(project: Project) -> list[RunRow]:
    """Returns the runs whose time has come, the longest overdue first."""
    rows = project.store.rows(status=DUE, due_before=project.clock.now())
    return sorted(rows, key=lambda row: row.due_at or 0.0)


async def resume_due(
    project: Project,
    *,
    limits: Limits | None = None,
    observers: Sequence[Observer] = (),
    warn: Warn = lambda _warning: None,
) -> list[Resumed]:
    """Drives on everything that is due; one that cannot go on does not hold up the others."""
    async with project.engine(observers) as engine:

        async def one(row: RunRow) -> Resumed:
            try:
                workflow = _ready(project, row, None, warn)
                return Resumed(row.name, await engine.resume(row.name, workflow, limits=limits))
            except SignoffError as error:
                return Resumed(row.name, None, error)

        return list(await asyncio.gather(*(one(row) for row in due_runs(project))))


def _also_by_role(
    project: Project, row: RunRow, switch: Mapping[str, str], warn: Warn
) -> dict[str, str]:
    """Returns the switches, with those for every role that a switched agent stands for."""
    from signoff.app.agents import known_agents

    roles = project.settings.roles
    known = {*known_agents(project.settings.agents), *project.agents, *roles}
    wide: dict[str, str] = {}
    for agent, to in switch.items():
        if agent not in {*known, ANY_AGENT} and agent != _failed_agent(project, row):
            warn(f"unknown agent or role {agent!r}; only steps that name it are switched")
        wide.update({role: to for role, played in roles.items() if played == agent})
        wide[agent] = to
    return wide


def _failed_agent(project: Project, row: RunRow) -> str:
    """Returns the agent whose error stopped the run: a workflow may ask one no settings name."""
    state = folded(project, row)
    error = error_of(state.status, state.stop_reason)
    return error.agent if error is not None else ""


def _ready(project: Project, row: RunRow, target: str | None, warn: Warn) -> Workflow:
    """Finds a run's workflow and takes its answer files, in this order: a file is used once."""
    found = project.find(target, row) if target is not None else project.find_again(row)
    for warning in take_file_answers(project, row.name).warnings:
        warn(warning)
    return found.workflow
