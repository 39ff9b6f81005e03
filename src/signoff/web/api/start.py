"""Starts runs, which workers drive."""

from __future__ import annotations

import os
from http import HTTPStatus

from fastapi import APIRouter, Request, Response

from signoff.app.hand_over import ensure_worker, hand_over
from signoff.app.project import Project
from signoff.app.runs import run_to_json
from signoff.app.start import StartPlan, StartRequest, plan_named
from signoff.runtime.paths import fresh_name
from signoff.web.access import Caller
from signoff.web.api.documents import RunInfo, StartDocument
from signoff.web.api.inbox import Key
from signoff.web.api.prefix import API
from signoff.web.callers import Operator
from signoff.web.idempotency import IdempotencyKeys
from signoff.web.projects import OpenProject

router = APIRouter(prefix=API, tags=["runs"])


@router.post("/runs", operation_id="start_run", status_code=201)
def start_run(
    request: Request,
    response: Response,
    project: OpenProject,
    caller: Operator,
    body: StartDocument,
    key: Key = None,
) -> RunInfo:
    """Start a run of one of the workflows; a worker drives it, whatever becomes of this server."""
    planned = _plan(project, body, caller)
    keys: IdempotencyKeys = request.app.state.keys
    asked, now = f"start {body.model_dump_json()}", project.clock.now()
    new_name = body.name or fresh_name(planned.target.workflow.name)
    with keys.request(caller.name, key, asked, new_name, now) as (name, repeated):
        if repeated and project.has_run(name):
            response.status_code = HTTPStatus.OK
        else:
            hand_over(project, planned, name=name)
    ensure_worker(project)
    response.headers["location"] = f"{API}/runs/{name}"
    return RunInfo.model_validate(run_to_json(project.store.row(name)))


def _plan(project: Project, body: StartDocument, caller: Caller) -> StartPlan:
    """Checks everything before anything is written."""
    asked = StartRequest(body.target, body.params, body.options, body.limits)
    return plan_named(project.home.root, os.environ, asked, agent=caller.agent)
