"""The list of workflows, and the form that starts a run of one, made from its parameters."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from signoff.app.runs.next_commands import error_message
from signoff.app.runs.start import plan
from signoff.app.runs.targets import REVIEW, CatalogEntry, find_workflow
from signoff.app.settings.project import Project
from signoff.app.workers.hand_over import ensure_worker, hand_over
from signoff.core import errors as er
from signoff.core.args import Param
from signoff.core.workflow import Workflow
from signoff.documents.control_characters import json_text
from signoff.notation import NotationOption, OptionKind
from signoff.runtime.paths import checked_name
from signoff.surfaces.web.api.routes import catalog_of, described, start_options
from signoff.surfaces.web.route_params import FormFields, OpenProject, Operator, SentForm
from signoff.surfaces.web.views.frame import show_page
from signoff.views.pages.html import Content, Markup, run_path, section, tag

PARAM, OPTION = "param-", "option-"
"""What the names of fields begin with: parameters and options may have the same names."""
NAME = "name"
"""The field for the name of the run."""
LONG_TEXT = 200
"""Characters of a default that gets more than a line."""
HERE = "/workflows"

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class StartForm:
    """What the form shows."""

    target: str
    workflow: Workflow
    values: Mapping[str, str]
    """What was entered, by the name of the field."""
    problem: str = ""
    """What is wrong with it, a line for each mistake."""

    @property
    def options(self) -> list[NotationOption]:
        """The options of its notation that a start takes."""
        return start_options(self.workflow)

    @property
    def params(self) -> list[str]:
        """The names of all parameters, the declared ones first."""
        declared = self.workflow.declared_params
        return [*declared, *sorted(set(self.workflow.inputs or ()) - set(declared))]


@router.get("/workflows")
def list_workflows(request: Request, project: OpenProject) -> Response:
    """Lists what can be started, and the files that cannot be used."""
    found = catalog_of(project)
    # A review of files has options of another kind, for which there is no form.
    entries = [described(project, each) for each in found.entries if each.target != REVIEW]
    main: list[Content] = [tag("h1", "Start a run")]
    groups = (("project", "Of this project", True), ("shipped", "Shipped", False))
    for name, title, own in groups:
        if some := [_entry(each) for each in entries if each.own is own]:
            main.append(section(name, title, tag("ul", some, class_="rows")))
    if not entries:
        words = "This project has no workflows with names yet: put one into .signoff/flows/."
        main.append(tag("p", words, class_="card empty"))
    if found.problems:
        listed = tag("ul", [tag("li", str(each)) for each in found.problems])
        main.append(section("problems", "Files that cannot be used",
                            tag("div", listed, class_="card")))  # fmt: skip
    return show_page(request, project, "Start a run", main, here=HERE)


def _entry(entry: CatalogEntry) -> Markup:
    address = f"/workflows/start?{urlencode({'target': entry.target})}"
    first, dot, use = " ".join(entry.description.split()).partition(". ")
    purpose = f"{first}{dot.strip()}"
    return tag(
        "li",
        tag(
            "div",
            tag("div", tag("a", entry.name, href=address), class_="name"),
            tag("div", purpose) if purpose else None,
            tag("div", use, class_="facts") if use else None,
            tag("div", f"{entry.kind} · ", tag("span", entry.target, class_="mono"),
                class_="facts"),
        ),
        tag("a", "Start…", href=address, class_="button plain", aria_label=f"Start {entry.name}"),
    )  # fmt: skip


@router.get("/workflows/start")
def show_form(request: Request, project: OpenProject, target: str) -> Response:
    """Shows the form of a workflow."""
    return _page(request, project, _form(project, target, {}))


@router.post("/workflows/start")
def start_run(request: Request, project: OpenProject, caller: Operator, form: SentForm) -> Response:
    """Starts a run, which a worker drives."""
    if caller.agent:
        # A human may let a flow run its scripts, or start from any file.
        raise er.NotAllowed("this form is for humans; agents start runs by the REST interface")
    entered = {name: form.one(name) for name in form.values}
    shown = _form(project, form.one("target"), entered)
    try:
        row = _start(project, shown, form)
    except er.SignoffError as error:
        return _page(request, project, replace(shown, problem=error_message(error)))
    ensure_worker(project)
    return RedirectResponse(run_path(row), 303)


def _form(project: Project, target: str, values: Mapping[str, str]) -> StartForm:
    root = project.home.root
    entry = catalog_of(project).find(target, root)
    return StartForm(entry.target, find_workflow(entry.target, root, os.environ), values)


def _page(request: Request, project: Project, form: StartForm) -> Response:
    title, status = f"Start {form.workflow.name}", 422 if form.problem else 200
    return show_page(request, project, title, _start_form(form), here=HERE, status=status)


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
        checked_name(name)
    # Everything is checked before a run exists, so a mistake leaves nothing behind.
    planned = plan(project.home.root, os.environ, shown.target, params, name=name, options=options)
    return hand_over(project, planned, name=name).name


def _value(workflow: Workflow, name: str, form: FormFields) -> str | None:
    """Returns the value of a parameter; None leaves it to its default."""
    param, entered = workflow.declared_params.get(name), form.one(f"{PARAM}{name}")
    if param is not None and param.type is bool:
        # A box that is not checked is not sent.
        return entered or "false"
    return entered or None


def _label(name: str) -> str:
    """Returns the name of a parameter or an option in words."""
    words = name.replace("_", " ").replace("-", " ").strip()
    return f"{words[:1].upper()}{words[1:]}"


def _start_form(form: StartForm) -> Iterator[Markup]:
    """Yields the form that starts a run."""
    workflow = form.workflow
    yield tag("p", tag("a", "← All workflows", href="/workflows"), class_="small")
    yield tag("h1", f"Start {workflow.name}")
    if workflow.description:
        yield tag("p", workflow.description)
    if form.problem:
        lines = [tag("p", each) for each in form.problem.splitlines()]
        yield tag("div", lines, class_="notice problem", role="alert")
    fields = [
        tag("input", type="hidden", name="target", value=form.target),
        *(_option(form, each) for each in form.options),
        *(_param(form, each) for each in form.params),
        _text(form, NAME, "Name of the run", "optional; one is made up otherwise"),
        tag("div", tag("button", "Start", class_="yes"), class_="actions"),
    ]
    yield tag("form", fields, method="post", action="/workflows/start", class_="card")


def _option(form: StartForm, option: NotationOption) -> Markup:
    name = f"{OPTION}{option.name}"
    if option.kind is OptionKind.FLAG:
        return _check(form, name, _label(option.word), option.help, default=False)
    return _text(form, name, _label(option.word), option.help)


def _param(form: StartForm, key: str) -> Markup:
    name, param = f"{PARAM}{key}", form.workflow.declared_params.get(key)
    if param is None:
        required = key in form.workflow.required
        return _text(form, name, _label(key), "required" if required else "", required=required)
    about = [param.arg.description, "required" if param.required else ""]
    hint = "; ".join(filter(None, about))
    default = None if param.required else param.default
    if param.arg.choices is not None:
        return _select(form, name, param, hint)
    if param.type is bool:
        return _check(form, name, _label(param.name), param.arg.description, default=bool(default))
    limits: dict[str, Any] = {}
    if param.type in (int, float):
        step = 1 if param.type is int else "any"
        limits = {"type": "number", "min": param.arg.min, "max": param.arg.max, "step": step}
    if param.type in (list, tuple):
        hint = "; ".join(filter(None, [hint, "several values with commas between them"]))
    label = _label(param.name)
    return _text(form, name, label, hint, _as_text(default), required=param.required, **limits)


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json_text(value)


def _text(
    form: StartForm, name: str, label: str, hint: str = "", default: str = "", **attributes: Any
) -> Markup:
    value = form.values.get(name, default)
    common = {"name": name, "id": name, **attributes}
    long = "type" not in attributes and ("\n" in value or len(value) > LONG_TEXT)
    entry = (
        tag("textarea", "\n", value, rows=6, **common) if long
        else tag("input", value=value, **common)
    )  # fmt: skip
    return _field(name, label, hint, entry)


def _select(form: StartForm, name: str, param: Param, hint: str) -> Markup:
    default = None if param.required else param.default
    chosen = form.values.get(name, "" if default is None else str(default))
    empty = [tag("option", "choose one", value="")] if default is None else []
    options = [
        tag("option", str(each), value=str(each), selected=str(each) == chosen)
        for each in param.arg.choices or ()
    ]
    entry = tag("select", empty, options, name=name, id=name, required=param.required)
    return _field(name, _label(param.name), hint, entry)


def _check(form: StartForm, name: str, label: str, hint: str, *, default: bool) -> Markup:
    checked = form.values[name] == "true" if name in form.values else default
    box = tag("input", type="checkbox", name=name, value="true", checked=checked, id=name)
    words = tag("span", tag("b", label), tag("span", f" {hint}", class_="small soft"))
    return tag("label", box, words, class_="choice", for_=name)


def _field(name: str, label: str, hint: str, entry: Markup) -> Markup:
    about = tag("span", f" {hint}", class_="small soft") if hint else None
    return tag("div", tag("label", label, about, for_=name), entry, class_="field")
