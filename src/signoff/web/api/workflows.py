"""Workflows: what can be started."""

from __future__ import annotations

import os
from typing import Annotated

from fastapi import APIRouter, Query

from signoff import plugins
from signoff.app.catalog import CatalogEntry, catalog
from signoff.app.project import Project
from signoff.app.targets import find_workflow
from signoff.core import graph
from signoff.core.workflow import Workflow
from signoff.errors import UnknownName
from signoff.notation import NotationOption
from signoff.web.api.documents import WorkflowDocument, WorkflowInfo, WorkflowList
from signoff.web.api.entity_tags import TaggedRoute
from signoff.web.projects import OpenProject

router = APIRouter(tags=["workflows"], route_class=TaggedRoute)


@router.get("/workflows", operation_id="list_workflows")
def list_workflows(project: OpenProject) -> WorkflowList:
    """List the workflows of the project, then those of installed packages."""
    found = catalog(project)
    workflows = [WorkflowInfo.model_validate(each._asdict()) for each in found.entries]
    return WorkflowList(workflows=workflows, problems=[*map(str, found.problems)])


@router.get("/workflow", operation_id="get_workflow")
def get_workflow(
    project: OpenProject,
    target: Annotated[str, Query(max_length=500, description="`target` of a workflow.")],
) -> WorkflowDocument:
    """Get a workflow: its parameters, the options it takes, and its graph."""
    entry = find_entry(project, target)
    workflow = find_workflow(target, project.home.root, os.environ)
    data = graph.data(workflow)
    options = [
        {"name": each.name, "kind": each.kind.name.lower(), "description": each.help}
        for each in start_options(workflow)
    ]
    described = {**entry._asdict(), "params": data.pop("parameters"), "options": options}
    return WorkflowDocument.model_validate({**described, "graph": data})


def find_entry(project: Project, target: str) -> CatalogEntry:
    """Returns a workflow of the catalog: a caller must not have any file of this machine run."""
    found = catalog(project)
    entry = found.find(target)
    if entry is None:
        raise UnknownName("workflow", target, [each.target for each in found.entries])
    return entry


def start_options(workflow: Workflow) -> list[NotationOption]:
    """Returns the options that a start of a workflow takes."""
    notation = plugins.notation(workflow.notation)
    options = notation.options if notation is not None else ()
    return [each for each in options if "run" in each.commands]
