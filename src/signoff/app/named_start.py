"""Plans runs of workflows by their name alone, for surfaces that agents use.

An agent can write any file, so a path or a module as the target would let it run its own code where
signoff runs. What has a name was installed: it is in the project's `.signoff/flows`, in a folder of
the settings, or in a package.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from signoff import plugins
from signoff.app.discovery import discover
from signoff.app.home import expected_home
from signoff.app.notations import compile_context, named_by_notations
from signoff.app.settings import load_settings
from signoff.app.start import StartPlan, plan
from signoff.errors import UnknownName, UsageError
from signoff.light_dataclass import light_dataclass
from signoff.notation import OptionKind

REVIEW = "review"
"""The name under which files that exist are reviewed, unless a workflow of the project has it."""


@light_dataclass(frozen=True)
class StartRequest:
    """What an agent asks to start."""

    workflow: str
    params: Mapping[str, Any]
    options: Mapping[str, Any]
    """Of the workflow's notation, such as the goal of a flow; of a review, those of its command."""
    limits: Mapping[str, Any]


def workflow_names(cwd: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the workflows that can be started by name, with the description of each."""
    home = expected_home(cwd, environment)
    settings = load_settings(home, environment)
    context = compile_context(home, settings, check_only=True)
    found = {
        each.workflow.name: each.workflow for each in discover(context, settings.workflows).found
    }
    titles = {name: workflow.description for name, workflow in found.items()}
    return {**dict.fromkeys(named_by_notations(context), ""), **titles}


def plan_named(cwd: Path, environment: Mapping[str, str], request: StartRequest) -> StartPlan:
    """Checks everything that can be checked without starting; raises the same errors."""
    limits = {name: str(value) for name, value in request.limits.items()}
    names = workflow_names(cwd, environment)
    if request.workflow == REVIEW and REVIEW not in names:
        if request.params:
            raise UsageError("a review has options and no parameters")
        planner = next(each.review for each in plugins.notations() if each.review)
        planned: StartPlan = plugins.load(planner)(request.options, environment, limits)
        return planned
    if request.workflow not in names:
        raise UnknownName("workflow", request.workflow, [REVIEW, *names])
    _check_options(request.options, expected_home(cwd, environment).root, cwd)
    return plan(
        cwd,
        environment,
        request.workflow,
        request.params,
        command_line={f"limits.{name}": value for name, value in limits.items()},
        options=request.options,
    )


def _check_options(options: Mapping[str, Any], root: Path, cwd: Path) -> None:
    """Raises `UsageError` for options that only a human may set, and files outside of the project.

    A flag such as the one that allows a flow's scripts extends what a run may do.
    """
    known = {
        each.name: each for each in plugins.options_of("run") if each.kind is not OptionKind.FLAG
    }
    for name, value in options.items():
        if name not in known:
            raise UnknownName("option", name, known)
        if not isinstance(value, str):
            raise UsageError(f"the option {name!r} must be a text, not {value!r}")
        if known[name].kind is OptionKind.FILE and not _inside(cwd / value, root):
            raise UsageError(f"{name}: {value!r} is not a file of the project")


def _inside(path: Path, root: Path) -> bool:
    return path.is_file() and path.resolve().is_relative_to(root.resolve())
