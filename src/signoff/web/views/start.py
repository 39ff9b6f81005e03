"""The list of workflows, and the form that starts a run of one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import PurePath

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from signoff import plugins
from signoff.app.hand_over import ensure_worker, hand_over
from signoff.app.next_commands import error_message
from signoff.app.project import Project
from signoff.app.start import plan
from signoff.app.targets import REVIEW, catalog, find_workflow
from signoff.core.args import missing
from signoff.core.workflow import Workflow
from signoff.errors import (
    InvalidParams,
    InvalidRunName,
    InvalidWorkflow,
    NameTaken,
    NotAllowed,
    Problem,
    SignoffError,
)
from signoff.notation import NotationOption
from signoff.pages.parts import run_path
from signoff.pages.start import NAME, OPTION, PARAM, StartForm, start_form, workflow_list
from signoff.remedies import PassOption
from signoff.runtime.paths import checked_name
from signoff.web.callers import Operator
from signoff.web.projects import OpenProject
from signoff.web.views.frame import FormFields, SentForm, show_page
from signoff.web.workflow_descriptions import described

HERE = "/workflows"

router = APIRouter(include_in_schema=False)


@router.get("/workflows")
def list_workflows(request: Request, project: OpenProject) -> Response:
    """Lists what can be started."""
    found = catalog(project.home, project.settings, project.agents)
    # A review of files has options of another kind, for which there is no form.
    entries = [described(project, each) for each in found.entries if each.target != REVIEW]
    own = sum(each.own for each in entries)
    parts = workflow_list(entries, [str(each) for each in found.problems], own)
    return show_page(request, project, "Start a run", parts, here=HERE)


@router.get("/workflows/start")
def show_form(request: Request, project: OpenProject, target: str) -> Response:
    """Shows the form of a workflow."""
    return _page(request, project, _form(project, target))


@router.post("/workflows/start")
def start_run(request: Request, project: OpenProject, caller: Operator, form: SentForm) -> Response:
    """Starts a run, which a worker drives."""
    if caller.agent:
        # A human may let a flow run its scripts, or start from any file.
        raise NotAllowed("this form is for humans; agents start runs by the REST interface")
    shown = _form(project, form.one("target"), _entered(form))
    try:
        row = _start(project, shown, form)
    except SignoffError as error:
        return _page(request, project, shown.with_errors(_field_errors(shown, error)))
    ensure_worker(project)
    return RedirectResponse(run_path(row), 303)


def _start(project: Project, shown: StartForm, form: FormFields) -> str:
    params = {
        name: value
        for name in shown.params
        if (value := _value(shown.workflow, name, form)) is not None
    }
    options = {
        each.name: value for each in shown.options if (value := form.one(f"{OPTION}{each.name}"))
    }
    name = form.one(NAME).strip() or None
    if name is not None:
        # Before everything else: it says so at its field, next to what else is wrong.
        checked_name(name)
    planned = plan(project.home.root, os.environ, shown.target, params, name=name, options=options)
    return hand_over(project, planned, name=name).name


def _field_errors(shown: StartForm, error: SignoffError) -> dict[str, str]:
    """Returns what is wrong by the field to correct; what belongs to no field has no name."""
    match error:
        case InvalidParams():
            fields = {missing(name).where: f"{PARAM}{name}" for name in shown.params}
        case InvalidRunName() | NameTaken():
            return {NAME: str(error)}
        case InvalidWorkflow():
            fields = _option_places(shown, error)
        case _:
            return {"": error_message(error)}
    errors: dict[str, list[str]] = {}
    for each in error.problems:
        # A file is named as it was entered, or from the root of the file system.
        file = PurePath(each.where.partition(":")[0]).name
        name = fields.get(each.where) or fields.get(file) or fields.get("", "")
        errors.setdefault(name, []).append(_words(each) if name else str(each))
    return {name: "\n".join(lines) for name, lines in errors.items()}


def _option_places(shown: StartForm, error: InvalidWorkflow) -> dict[str, str]:
    """Returns the fields of the files that were entered, and of the option that would help."""
    names = {each.name: f"{OPTION}{each.name}" for each in shown.options}
    places = {
        PurePath(entered).name: field
        for field in names.values()
        if (entered := shown.values.get(field, "").strip())
    }
    asked = [
        each.option
        for each in error.remedies
        if isinstance(each, PassOption) and each.option in names
    ]
    return places | ({"": names[asked[0]]} if asked else {})


def _words(problem: Problem) -> str:
    return f"{problem.what}; {problem.remedy}" if problem.remedy else problem.what


def _value(workflow: Workflow, name: str, form: FormFields) -> str | None:
    """Returns the value of a parameter; None leaves it to its default."""
    param, entered = workflow.declared_params.get(name), form.one(f"{PARAM}{name}")
    if param is not None and param.type is bool:
        # A box that is not checked is not sent.
        return entered or "false"
    return entered or None


def _form(project: Project, target: str, values: Mapping[str, str] | None = None) -> StartForm:
    root = project.home.root
    entry = catalog(project.home, project.settings, project.agents).find(target, root)
    workflow = find_workflow(entry.target, root, os.environ)
    return StartForm(entry.target, workflow, _options(workflow), values or {})


def _options(workflow: Workflow) -> list[NotationOption]:
    notation = plugins.notation(workflow.notation)
    options = notation.options if notation is not None else ()
    return [each for each in options if "run" in each.commands]


def _entered(form: FormFields) -> dict[str, str]:
    return {name: form.one(name) for name in form.names}


def _page(request: Request, project: Project, form: StartForm) -> Response:
    title, status = f"Start {form.workflow.name}", 422 if form.errors else 200
    return show_page(request, project, title, start_form(form), here=HERE, status=status)
