"""Plans runs for surfaces that start workflows for others: programs and AI agents.

Such a caller names a workflow in any form that `run` takes, but only one of the catalog. An agent
can write any file, so a path or a module of its choice would let it run its own code where signoff
runs. What is in the catalog was installed: it is in the project's `.signoff/flows`, in a folder of
the settings, or in a package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from signoff import plugins
from signoff.app.catalog import REVIEW, Catalog, read_catalog
from signoff.app.home import expected_home
from signoff.app.settings import load_settings
from signoff.app.start import StartPlan, plan
from signoff.errors import NotAllowed, UnknownName, UsageError
from signoff.notation import OptionKind


@dataclass(frozen=True)
class StartRequest:
    """What a caller asks to start."""

    workflow: str
    params: Mapping[str, Any]
    options: Mapping[str, Any]
    """Of the workflow's notation, such as the goal of a flow; of a review, those of its command."""
    limits: Mapping[str, Any]


def startable(cwd: Path, environment: Mapping[str, str]) -> Catalog:
    """Returns the workflows that can be started from a folder."""
    home = expected_home(cwd, environment)
    return read_catalog(home, load_settings(home, environment))


def plan_named(
    cwd: Path, environment: Mapping[str, str], request: StartRequest, *, agent: bool = True
) -> StartPlan:
    """Checks everything that can be checked without starting; raises the same errors.

    `agent` tells whether an AI agent asks, which must not extend what a run may do: of its limits
    and those of the project, the smaller ones hold.
    """
    planned = _plan(cwd, environment, request, agent=agent)
    if not agent or planned.own_limits is None:
        return planned
    settings = load_settings(planned.home, environment)
    project = planned.target.workflow.limits.over(settings.limits)
    own = planned.own_limits.at_most(project)
    return replace(planned, own_limits=own, limits=own.over(project))


def _plan(
    cwd: Path, environment: Mapping[str, str], request: StartRequest, *, agent: bool
) -> StartPlan:
    limits = {name: str(value) for name, value in request.limits.items()}
    entry = startable(cwd, environment).find(request.workflow, cwd)
    if entry.target == REVIEW:
        if request.params:
            raise UsageError("a review has options and no parameters")
        planner = next(each.review for each in plugins.notations() if each.review)
        planned: StartPlan = plugins.load(planner)(cwd, request.options, environment, limits)
        return planned
    root = expected_home(cwd, environment).root
    _check_options(request.options, root, cwd, agent=agent)
    return plan(
        root,
        environment,
        entry.target,
        request.params,
        command_line={f"limits.{name}": value for name, value in limits.items()},
        options={**request.options, **_files(request.options, cwd)},
    )


def _check_options(options: Mapping[str, Any], root: Path, cwd: Path, *, agent: bool) -> None:
    """Raises an error for options that an agent may not set, and files outside of the project."""
    known = {each.name: each for each in plugins.options_of("run")}
    for name, value in options.items():
        if name not in known:
            raise UnknownName("option", name, known)
        kind = known[name].kind
        if kind is OptionKind.FLAG:
            if agent:
                # A flag such as the one that allows a flow's scripts extends what a run may do.
                raise NotAllowed(f"an agent cannot set the option {name!r}; a human can start it")
        elif kind is not OptionKind.LIST and not isinstance(value, str):
            raise UsageError(f"the option {name!r} must be a text, not {value!r}")
        if kind is OptionKind.FILE and not _inside(cwd / value, root):
            raise UsageError(
                f"the option {name!r} must name a file of the project; {value!r} is none"
            )


def _files(options: Mapping[str, Any], cwd: Path) -> dict[str, str]:
    """Returns the options that name files, independent of the folder they are seen from."""
    kinds = {each.name: each.kind for each in plugins.options_of("run")}
    return {
        name: str(cwd / value) for name, value in options.items() if kinds[name] is OptionKind.FILE
    }


def _inside(path: Path, root: Path) -> bool:
    try:
        return path.is_file() and path.resolve().is_relative_to(root.resolve())
    except (OSError, ValueError):
        return False
