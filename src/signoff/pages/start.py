"""Starting a run: the list of workflows, and the form made from a workflow's parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol
from urllib.parse import urlencode

from signoff.core.args import BoundedInt, Param
from signoff.core.workflow import Workflow
from signoff.documents.control_characters import json_text
from signoff.notation import NotationOption, OptionKind
from signoff.pages.html import Content, Markup, tag
from signoff.pages.parts import section

PARAM, OPTION = "param-", "option-"
"""What the names of fields begin with: parameters and options may have the same names."""
NAME = "name"
"""The field for the name of the run."""
LONG_TEXT = 200
"""Characters of a default that gets more than a line."""


class Startable(Protocol):
    """A workflow in the list."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def target(self) -> str:
        """What starts it."""

    @property
    def description(self) -> str:
        """What it is for."""

    @property
    def kind(self) -> str:
        """What it is, in words."""


@dataclass(frozen=True)
class StartForm:
    """What the form shows."""

    target: str
    workflow: Workflow
    options: Sequence[NotationOption] = ()
    """The options of its notation that a start takes."""
    values: Mapping[str, str] = field(default_factory=dict)
    """What was entered, by the name of the field."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """What is wrong, by the name of the field; general problems have no name."""

    def with_errors(self, errors: Mapping[str, str]) -> StartForm:
        """Returns the form with what is wrong with it."""
        return replace(self, errors=errors)

    @property
    def params(self) -> list[str]:
        """The names of all parameters, the declared ones first."""
        declared = self.workflow.declared_params
        return [*declared, *sorted(set(self.workflow.inputs or ()) - set(declared))]


def workflow_list(
    entries: Sequence[Startable], problems: Sequence[str], own: int
) -> Iterator[Markup]:
    """Yields the workflows to choose from; the first `own` ones belong to the project."""
    yield tag("h1", "Start a run")
    groups = (("project", "Of this project", entries[:own]), ("shipped", "Shipped", entries[own:]))
    for name, title, some in groups:
        if some:
            yield section(name, title, tag("ul", [_entry(each) for each in some], class_="rows"))
    if not entries:
        words = "This project has no workflows with names yet: put one into .signoff/flows/."
        yield tag("p", words, class_="card empty")
    if problems:
        listed = tag("ul", [tag("li", each) for each in problems])
        yield section("problems", "Files that cannot be used", tag("div", listed, class_="card"))


def _entry(entry: Startable) -> Markup:
    address = f"/workflows/start?{urlencode({'target': entry.target})}"
    purpose, use = _purpose(entry.description)
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


def _purpose(description: str) -> tuple[str, str]:
    """Returns the first sentence of a description, and the rest."""
    first, dot, rest = " ".join(description.split()).partition(". ")
    return f"{first}{dot.strip()}", rest


def label_of(name: str) -> str:
    """Returns the name of a parameter or an option in words."""
    words = name.replace("_", " ").replace("-", " ").strip()
    return f"{words[:1].upper()}{words[1:]}"


def start_form(form: StartForm) -> Iterator[Markup]:
    """Yields the form that starts a run."""
    workflow = form.workflow
    yield tag("p", tag("a", "← All workflows", href="/workflows"), class_="small")
    yield tag("h1", f"Start {workflow.name}")
    if workflow.description:
        yield tag("p", workflow.description)
    if form.errors:
        yield tag("p", _general(form), class_="notice problem", role="alert")
    fields = [
        tag("input", type="hidden", name="target", value=form.target),
        *(_option(form, each) for each in form.options),
        *(_param(form, each) for each in form.params),
        _text(form, NAME, "Name of the run", "optional; one is made up otherwise"),
        tag("div", tag("button", "Start", class_="yes"), class_="actions"),
    ]
    yield tag("form", fields, method="post", action="/workflows/start", class_="card")


def _general(form: StartForm) -> Content:
    """Returns what belongs to no field, or which fields need a correction, as links to them."""
    if general := form.errors.get("", ""):
        return general
    count = len(form.errors)
    links: list[Content] = ["Nothing was started. "]
    links.append("Correct this field: " if count == 1 else f"Correct these {count} fields: ")
    for number, name in enumerate(form.errors):
        words = label_of(name.removeprefix(PARAM).removeprefix(OPTION))
        links += [", " if number else "", tag("a", words, href=f"#{name}")]
    return links


def _option(form: StartForm, option: NotationOption) -> Markup:
    name = f"{OPTION}{option.name}"
    if option.kind is OptionKind.FLAG:
        return _check(form, name, label_of(option.word), option.help, default=False)
    return _text(form, name, label_of(option.word), option.help)


def _param(form: StartForm, key: str) -> Markup:
    name, param = f"{PARAM}{key}", form.workflow.declared_params.get(key)
    if param is None:
        required = key in form.workflow.required
        return _text(form, name, label_of(key), "required" if required else "", required=required)
    about = [param.arg.description, "required" if param.required else ""]
    hint = "; ".join(filter(None, about))
    default = None if param.required else param.default
    if param.arg.choices is not None:
        return _select(form, name, param, hint)
    if param.type is bool:
        return _check(
            form, name, label_of(param.name), param.arg.description, default=bool(default)
        )
    domain = param.domain()
    limits: dict[str, Any] = {}
    if param.type in (int, float):
        low, high = (
            (domain.lo, domain.hi)
            if isinstance(domain, BoundedInt)
            else (param.arg.min, param.arg.max)
        )
        limits = {"type": "number", "min": low, "max": high,
                  "step": 1 if param.type is int else "any"}  # fmt: skip
    if param.type in (list, tuple):
        hint = "; ".join(filter(None, [hint, "several values with commas between them"]))
    label = label_of(param.name)
    return _text(form, name, label, hint, _as_text(default), required=param.required, **limits)


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json_text(value)


def _text(
    form: StartForm,
    name: str,
    label: str,
    hint: str = "",
    default: str = "",
    **attributes: Any,
) -> Markup:
    value = form.values.get(name, default)
    common = {"name": name, "id": name, **_problem(form, name), **attributes}
    long = "type" not in attributes and ("\n" in value or len(value) > LONG_TEXT)
    entry = (
        tag("textarea", "\n", value, rows=6, **common) if long
        else tag("input", value=value, **common)
    )  # fmt: skip
    return _field(form, name, label, hint, entry)


def _select(form: StartForm, name: str, param: Param, hint: str) -> Markup:
    default = None if param.required else param.default
    chosen = form.values.get(name, "" if default is None else str(default))
    empty = [tag("option", "choose one", value="")] if default is None else []
    options = [
        tag("option", str(each), value=str(each), selected=str(each) == chosen)
        for each in param.arg.choices or ()
    ]
    entry = tag("select", empty, options, name=name, id=name, required=param.required,
                **_problem(form, name))  # fmt: skip
    return _field(form, name, label_of(param.name), hint, entry)


def _check(form: StartForm, name: str, label: str, hint: str, *, default: bool) -> Markup:
    checked = form.values[name] == "true" if name in form.values else default
    box = tag("input", type="checkbox", name=name, value="true", checked=checked, id=name)
    words = tag("span", tag("b", label), tag("span", f" {hint}", class_="small soft"))
    return tag("label", box, words, class_="choice", for_=name)


def _field(form: StartForm, name: str, label: str, hint: str, entry: Markup) -> Markup:
    words: list[Content] = [label]
    if hint:
        words.append(tag("span", f" {hint}", class_="small soft"))
    error = form.errors.get(name)
    note = tag("p", error, class_="error", id=f"{name}-error") if error else None
    return tag("div", tag("label", words, for_=name), entry, note, class_="field")


def _problem(form: StartForm, name: str) -> dict[str, Any]:
    """Returns the attributes that tie a field to what is wrong with it."""
    if name not in form.errors:
        return {}
    return {"aria_invalid": "true", "aria_describedby": f"{name}-error"}
