"""Runs: list them, show one, cancel, resume."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Query

from signoff.app.hand_over import ensure_worker, wake
from signoff.app.runs import RunFilter, cancel, current_row, list_page, run_to_json
from signoff.app.show import show
from signoff.core.outcome import Status
from signoff.web.api.documents import CancelDocument, RunDocument, RunInfo, RunPage
from signoff.web.api.prefix import API
from signoff.web.api.remote import remote_run
from signoff.web.callers import Operator
from signoff.web.projects import OpenProject

MOST_ROWS = 200

RunName = Annotated[str, Path(max_length=100, description="The name of a run.")]

router = APIRouter(prefix=API, tags=["runs"])


@router.get("/runs", operation_id="list_runs")
def list_runs(
    project: OpenProject,
    status: Annotated[list[Status] | None, Query(description="Only these; repeatable.")] = None,
    workflow: Annotated[str, Query(max_length=200, description="Only this workflow.")] = "",
    text: Annotated[str, Query(max_length=200, description="Part of a name or a reason.")] = "",
    cursor: Annotated[str, Query(max_length=18, description="`next` of the page before.")] = "",
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 50,
) -> RunPage:
    """List runs, newest first."""
    chosen = RunFilter(tuple(status or ()), workflow, text)
    page = list_page(project, chosen, cursor=cursor, limit=limit)
    return RunPage.model_validate({"runs": map(run_to_json, page.rows), "next": page.next})


@router.get("/runs/{run}", operation_id="get_run")
def get_run(project: OpenProject, run: RunName) -> RunDocument:
    """Get a run: its status, requests, decisions, steps and spend."""
    return RunDocument.model_validate(remote_run(show(project, project.store.row(run).name)))


@router.post("/runs/{run}/cancel", operation_id="cancel_run")
def cancel_run(
    project: OpenProject, caller: Operator, run: RunName, body: CancelDocument | None = None
) -> RunInfo:
    """Cancel a run; when this answers, nothing of it is active any more."""
    why = body.why if body is not None else ""
    asyncio.run(cancel(project, run, f"by {caller.name}{why and f': {why}'}"))
    return _info(project, run)


@router.post("/runs/{run}/resume", operation_id="resume_run", status_code=202)
def resume_run(project: OpenProject, _caller: Operator, run: RunName) -> RunInfo:
    """Hand a run that rests to a worker, which continues it."""
    wake(project, project.store.row(run).name)
    ensure_worker(project)
    return _info(project, run)


def _info(project: OpenProject, run: str) -> RunInfo:
    return RunInfo.model_validate(run_to_json(current_row(project, project.store.row(run))))
