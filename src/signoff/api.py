"""Running workflows from Python.

`run` and `resume` block until the run rests; `run_async` and `resume_async` are for
programs with an event loop. Without a store, runs live in the project's own database,
so they can be listed, answered and resumed on the command line as well.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from signoff.core.spend import Limits
from signoff.core.workflow import Workflow
from signoff.errors import UsageError
from signoff.runtime.ports import Agent, Observer, Store
from signoff.runtime.result import RunResult

if TYPE_CHECKING:
    from collections.abc import Iterator

    from signoff.app.project import Project

LimitsLike = Limits | Mapping[str, float]
"""`Limits(usd=5)` or `{"usd": 5}`."""


def run(
    workflow: Workflow,
    params: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    store: Store | None = None,
    home: str | Path | None = None,
    agents: Mapping[str, Agent] | None = None,
    limits: LimitsLike | None = None,
    observers: Sequence[Observer] = (),
) -> RunResult:
    """Drives a new run to its end or its next wait.

    `home` is a project folder or its `.signoff/`; by default it is found from the current
    folder upwards, and made there when there is none. `agents` answer beside those of the
    settings. With a `store` of your own, nothing is read or written anywhere else.
    """
    work = run_async(
        workflow,
        params,
        name=name,
        store=store,
        home=home,
        agents=agents,
        limits=limits,
        observers=observers,
    )
    return _at_the_edge(work, "run")


async def run_async(
    workflow: Workflow,
    params: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    store: Store | None = None,
    home: str | Path | None = None,
    agents: Mapping[str, Agent] | None = None,
    limits: LimitsLike | None = None,
    observers: Sequence[Observer] = (),
) -> RunResult:
    """Drives a new run to its end or its next wait, inside a running event loop."""
    ceilings = _limits(limits)
    if store is not None:
        from signoff.runtime.engine import Engine

        watching = [*_log(), *observers]
        async with Engine(store, agents=agents or {}, observers=watching) as engine:
            return await engine.start(workflow, params, name=name, limits=ceilings)
    with _project(home, agents) as project:
        async with project.engine([*_log(), *observers]) as engine:
            target = place_of(workflow, project.home.root)
            return await engine.start(workflow, params, name=name, limits=ceilings, target=target)


def resume(
    name: str,
    workflow: Workflow,
    *,
    store: Store | None = None,
    home: str | Path | None = None,
    agents: Mapping[str, Agent] | None = None,
    limits: LimitsLike | None = None,
    adopt: bool = False,
    observers: Sequence[Observer] = (),
) -> RunResult:
    """Drives a run on from where it stopped; one that has ended says how."""
    work = resume_async(
        name,
        workflow,
        store=store,
        home=home,
        agents=agents,
        limits=limits,
        adopt=adopt,
        observers=observers,
    )
    return _at_the_edge(work, "resume")


async def resume_async(
    name: str,
    workflow: Workflow,
    *,
    store: Store | None = None,
    home: str | Path | None = None,
    agents: Mapping[str, Agent] | None = None,
    limits: LimitsLike | None = None,
    adopt: bool = False,
    observers: Sequence[Observer] = (),
) -> RunResult:
    """Drives a run on from where it stopped, inside a running event loop."""
    ceilings = _limits(limits)
    if store is not None:
        from signoff.runtime.engine import Engine

        watching = [*_log(), *observers]
        async with Engine(store, agents=agents or {}, observers=watching) as engine:
            return await engine.resume(name, workflow, limits=ceilings, adopt=adopt)
    with _project(home, agents) as project:
        from signoff.app.file_answers import take_file_answers

        take_file_answers(project, project.run(name).name)
        async with project.engine([*_log(), *observers]) as engine:
            return await engine.resume(name, workflow, limits=ceilings, adopt=adopt)


def place_of(workflow: Workflow, root: Path) -> str:
    """Returns where a workflow stands, so that the command line finds it again; empty if unknown.

    It is looked for among the globals of its own handlers' modules.
    """
    for step in workflow.steps.values():
        module = sys.modules.get(getattr(step.handler, "__module__", None) or "")
        if module is None:
            continue
        for name, value in vars(module).items():
            if value is workflow:
                return _module_place(module, name, root)
    return ""


def _module_place(module: ModuleType, name: str, root: Path) -> str:
    if module.__name__ != "__main__":
        return f"{module.__name__}:{name}"
    # A script run by Python has no name to import it by, but it has a place.
    file = getattr(module, "__file__", None)
    if not file:
        return ""
    path = Path(file).resolve()
    inside = path.is_relative_to(root.resolve())
    return f"{path.relative_to(root.resolve()).as_posix() if inside else path}:{name}"


@contextmanager
def _project(home: str | Path | None, agents: Mapping[str, Agent] | None) -> Iterator[Project]:
    from signoff.app.home import FOLDER, VARIABLE, init_home
    from signoff.app.project import open_project

    environment = dict(os.environ)
    cwd = Path.cwd()
    if home is not None:
        folder = Path(home).expanduser().absolute()
        environment[VARIABLE] = str(folder if folder.name == FOLDER else folder / FOLDER)
        init_home(cwd, environment)
    with open_project(cwd, environment, create=True, agents=agents) as project:
        yield project


def _log() -> list[Observer]:
    """Tells runs to Python's logging where the program has set it up."""
    import logging

    from signoff.runtime.observers import LOGGER, LoggingObserver

    return [LoggingObserver()] if logging.getLogger(LOGGER).hasHandlers() else []


def _limits(limits: LimitsLike | None) -> Limits | None:
    if limits is None or isinstance(limits, Limits):
        return limits
    try:
        return Limits.from_json(limits)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _at_the_edge(work: Coroutine[Any, Any, RunResult], name: str) -> RunResult:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    work.close()
    raise UsageError(
        f"signoff.{name}() cannot be called while an event loop is running here; "
        f"use: await signoff.{name}_async(...)"
    )
