"""Starts runs for agents: in the background, or handed out to the agent itself."""

from __future__ import annotations

from typing import Any

from anyio.to_thread import run_sync

from signoff.app.agents import refuse_not_ready
from signoff.app.external_work import start_pulled
from signoff.app.hand_over import hand_over
from signoff.app.project import Project
from signoff.app.start import StartPlan, StartRequest, plan_named
from signoff.mcp.access import ServerOptions
from signoff.mcp.bounds import line, without_empty
from signoff.mcp.replies import LONGEST_LABEL, LONGEST_TEXT
from signoff.runtime.store_port import RunRow

MOST_STEPS = 12
MOST_WARNINGS = 3


async def start_run(
    server: ServerOptions, request: StartRequest, name: str, *, pull: bool
) -> dict[str, Any]:
    """Starts a run and returns its handle; a retry with the same name returns the same run."""
    planned = await run_sync(plan_named, server.cwd, server.environment, request)
    if not pull:
        await run_sync(lambda: refuse_not_ready(planned.not_ready()))
    with planned.open(server.cwd, server.environment) as project:
        project.for_agent = True
        row = await run_sync(_same_run, project, planned, name)
        if row is None and pull:
            options = {"name": name or None, "limits": planned.own_limits}
            started = await start_pulled(project, planned.target, request.params, **options)
            row = started.row
        elif row is None:
            row = await run_sync(lambda: hand_over(project, planned, name=name or None))
        if not pull:
            await run_sync(server.start_worker, project)
        return _reply(planned, row, pull=pull)


def _same_run(project: Project, planned: StartPlan, name: str) -> RunRow | None:
    """Returns the run that a call with this name has started before, if it was the same call.

    The answer to a call can get lost: the client gives up, or the server is killed.
    """
    if not name or not project.has_run(name):
        return None
    row = project.store.row(name)
    return row if row.definition == planned.target.workflow.digest else None


def _reply(planned: StartPlan, row: RunRow, *, pull: bool) -> dict[str, Any]:
    dry_run, workflow = planned.dry_run(), planned.target.workflow
    calls = (dry_run.facts.get("calls") or {}) if dry_run is not None else {}
    warnings = (*planned.warnings, *workflow.warnings)[:MOST_WARNINGS]
    after = f"work(run={row.name!r})" if pull else f"wait(run={row.name!r}, cursor={row.head})"
    return without_empty(
        {
            "run": row.name,
            "status": row.status.value,
            "cursor": row.head,
            "steps": [line(each, LONGEST_LABEL) for each in list(workflow.steps)[:MOST_STEPS]],
            "most_calls": calls.get("at_most"),
            "limits": planned.limits.to_json(),
            "warnings": [line(each, LONGEST_TEXT) for each in warnings],
            "next": after,
        }
    )
