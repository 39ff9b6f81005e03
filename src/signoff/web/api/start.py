"""Starts runs, which workers drive."""

from __future__ import annotations

import os
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response

from signoff.app.hand_over import ensure_worker, hand_over
from signoff.app.project import Project
from signoff.app.runs import run_to_json
from signoff.app.start import StartPlan, plan
from signoff.app.targets import find_workflow
from signoff.errors import NameTaken, NotAllowed, UnknownName, UsageError
from signoff.notation import NotationOption, OptionKind
from signoff.runtime.names import fresh_name
from signoff.web.access import Caller
from signoff.web.api.documents import RunInfo, StartDocument
from signoff.web.api.inbox import Key
from signoff.web.api.workflows import find_entry, start_options
from signoff.web.callers import Operator
from signoff.web.idempotency import IdempotencyKeys
from signoff.web.projects import OpenProject

router = APIRouter(tags=["runs"])


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
    name, repeated = body.name or fresh_name(planned.target.workflow.name), False
    if key is not None:
        asked = f"start {body.model_dump_json()}"
        name, repeated = keys.claim(caller.name, key, asked, name, project.clock.now())
    if repeated and project.has_run(name):
        response.status_code = HTTPStatus.OK
    else:
        try:
            hand_over(project, planned, name=name)
        except NameTaken:
            # With the same key, another request has just made it; else it belongs to someone.
            if not repeated:
                keys.drop(caller.name, key or "")
                raise
    ensure_worker(project)
    response.headers["location"] = f"/api/v1/runs/{name}"
    return RunInfo.model_validate(run_to_json(project.store.row(name)))


def _plan(project: Project, body: StartDocument, caller: Caller) -> StartPlan:
    """Checks everything before anything is written."""
    find_entry(project, body.target)
    root = project.home.root
    workflow = find_workflow(body.target, root, os.environ)
    _check_options(
        {each.name: each for each in start_options(workflow)}, body.options, root, caller
    )
    return plan(
        root,
        os.environ,
        body.target,
        body.params,
        command_line={f"limits.{name}": str(value) for name, value in body.limits.items()},
        options=body.options,
    )


def _check_options(
    known: dict[str, NotationOption], values: dict[str, Any], root: Path, caller: Caller
) -> None:
    for name, value in values.items():
        option = known.get(name)
        if option is None:
            raise UnknownName("option", name, known)
        if option.kind is OptionKind.FLAG and caller.agent:
            # Such a flag extends what a run may do, for example run the scripts of a flow.
            raise NotAllowed(f"an agent cannot set {name!r}")
        if option.kind is OptionKind.FILE and not _inside(root / str(value), root):
            raise UsageError(f"{name}: {value!r} is not a file of the project")


def _inside(path: Path, root: Path) -> bool:
    try:
        return path.is_file() and path.resolve().is_relative_to(root.resolve())
    except (OSError, ValueError):
        return False
