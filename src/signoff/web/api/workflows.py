"""Workflows: what can be started."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query

from signoff import plugins
from signoff.app.targets import REVIEW, catalog, find_workflow
from signoff.core import graph
from signoff.core.workflow import Workflow
from signoff.notation import NotationOption
from signoff.web.api.documents import (
    TARGET_HELP,
    Json,
    WorkflowDocument,
    WorkflowInfo,
    WorkflowList,
)
from signoff.web.api.prefix import API
from signoff.web.projects import OpenProject
from signoff.web.workflow_descriptions import described

router = APIRouter(prefix=API, tags=["workflows"])


@router.get("/workflows", operation_id="list_workflows")
def list_workflows(project: OpenProject) -> WorkflowList:
    """List the workflows of the project, then those of installed packages.

    `review` reviews files that exist, by its options.
    """
    found = catalog(project.home, project.settings, project.agents)
    entries = [described(project, each) for each in found.entries]
    workflows = [WorkflowInfo.model_validate(each._asdict()) for each in entries]
    return WorkflowList(workflows=workflows, problems=[*map(str, found.problems)])


@router.get("/workflow", operation_id="get_workflow")
def get_workflow(
    project: OpenProject,
    target: Annotated[str, Query(max_length=500, description=TARGET_HELP)],
) -> WorkflowDocument:
    """Get a workflow: its parameters, the options it takes, and its graph."""
    entry = described(
        project,
        catalog(project.home, project.settings, project.agents).find(target, project.home.root),
    )
    if entry.target == REVIEW:
        # Its graph depends on its options.
        parts: Json = {"params": [], "graph": {}, "options": _described(_review_options())}
    else:
        workflow = find_workflow(entry.target, project.home.root, os.environ)
        data = graph.data(workflow)
        options = _described(start_options(workflow))
        parts = {"params": data.pop("parameters"), "graph": data, "options": options}
    return WorkflowDocument.model_validate({**entry._asdict(), **parts})


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
