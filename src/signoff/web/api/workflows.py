"""Workflows: what can be started, and starting it; workers drive the runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from signoff import plugins
from signoff.app.hand_over import ensure_worker, hand_over
from signoff.app.project import Project
from signoff.app.runs import run_to_json
from signoff.app.start import StartRequest, plan_named
from signoff.app.targets import REVIEW, Catalog, CatalogEntry, catalog, find_workflow
from signoff.core import graph
from signoff.core.workflow import Workflow
from signoff.errors import SignoffError
from signoff.notation import NotationOption
from signoff.runtime.paths import fresh_name
from signoff.web.api.documents import (
    API,
    TARGET_HELP,
    Json,
    Key,
    RunInfo,
    StartDocument,
    WorkflowDocument,
    WorkflowInfo,
    WorkflowList,
)
from signoff.web.idempotency import IdempotencyKeys
from signoff.web.route_params import OpenProject, Operator

router = APIRouter(prefix=API)


@router.get("/workflows", operation_id="list_workflows", tags=["workflows"])
def list_workflows(project: OpenProject) -> WorkflowList:
    """List the workflows of the project, then those of installed packages.

    `review` reviews files that exist, by its options.
    """
    found = catalog_of(project)
    entries = [described(project, each) for each in found.entries]
    workflows = [WorkflowInfo.model_validate(each._asdict()) for each in entries]
    return WorkflowList(workflows=workflows, problems=[*map(str, found.problems)])


@router.get("/workflow", operation_id="get_workflow", tags=["workflows"])
def get_workflow(
    project: OpenProject,
    target: Annotated[str, Query(max_length=500, description=TARGET_HELP)],
) -> WorkflowDocument:
    """Get a workflow: its parameters, the options it takes, and its graph."""
    entry = described(project, catalog_of(project).find(target, project.home.root))
    if entry.target == REVIEW:
        # Its graph depends on its options.
        parts: Json = {"params": [], "graph": {}, "options": _described(_review_options())}
    else:
        workflow = find_workflow(entry.target, project.home.root, os.environ)
        data = graph.data(workflow)
        options = _described(start_options(workflow))
        parts = {"params": data.pop("parameters"), "graph": data, "options": options}
    return WorkflowDocument.model_validate({**entry._asdict(), **parts})


def catalog_of(project: Project) -> Catalog:
    """Returns what can be started in a project."""
    return catalog(project.home, project.settings, project.agents)


def described(project: Project, entry: CatalogEntry) -> CatalogEntry:
    """Returns an entry with the description of its workflow."""
    if entry.description or entry.own or entry.target == REVIEW:
        return entry
    return entry._replace(description=_shipped_description(entry.target, project.home.root))


@cache
def _shipped_description(target: str, root: Path) -> str:
    """Returns what a shipped workflow is for; it has to be imported to find out, once."""
    try:
        return find_workflow(target, root, os.environ).description
    except SignoffError:
        return ""


def start_options(workflow: Workflow) -> list[NotationOption]:
    """Returns the options that a start of a workflow takes."""
    notation = plugins.notation(workflow.notation)
    options = notation.options if notation is not None else ()
    return [each for each in options if "run" in each.commands]


def _review_options() -> Sequence[NotationOption]:
    return next(each.review_options for each in plugins.notations() if each.review)


def _described(options: Sequence[NotationOption]) -> list[Json]:
    return [
        {"name": each.name, "kind": each.kind.name.lower(), "description": each.help}
        for each in options
    ]


@router.post("/runs", operation_id="start_run", tags=["runs"], status_code=201)
def start_run(
    request: Request,
    response: Response,
    project: OpenProject,
    caller: Operator,
    body: StartDocument,
    key: Key = None,
) -> RunInfo:
    """Start a run of one of the workflows; a worker drives it, whatever becomes of this server."""
    # Everything is checked before anything is written.
    asked_for = StartRequest(body.target, body.params, body.options, body.limits)
    planned = plan_named(project.home.root, os.environ, asked_for, agent=caller.agent)
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
