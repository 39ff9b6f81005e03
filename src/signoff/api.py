"""Running workflows from Python.

`run` and `resume` block until the run ends or waits. `run_async` and `resume_async` are for
programs with an event loop. `answer` returns at once and works in both. Without a store, runs are
in the project's own database, so they can also be listed, answered and resumed on the command
line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial, wraps
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec

from signoff.core.errors import UsageError
from signoff.core.spend import Limits
from signoff.core.workflow import Workflow
from signoff.runtime.ports import Agent, Observer
from signoff.runtime.result import RunResult
from signoff.runtime.store_port import InboxItem, Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from signoff.app.runs.targets import Target
    from signoff.app.settings.project import Project
    from signoff.runtime.engine import Engine

LimitsLike = Limits | Mapping[str, float]
"""`Limits(usd=5)` or `{"usd": 5}`."""


P = ParamSpec("P")


def _blocking(function: Callable[P, Coroutine[Any, Any, RunResult]]) -> Callable[P, RunResult]:
    """Returns the same function for programs without an event loop."""
    name = function.__name__.removesuffix("_async")

    @wraps(function)
    def blocking(*args: P.args, **kwargs: P.kwargs) -> RunResult:
        # A file that defines workflows often imports `run` too. The command line imports such
        # files to list, check or draw workflows, and should not wait for asyncio then.
        import asyncio

        with suppress(RuntimeError):
            asyncio.get_running_loop()
            raise UsageError(
                f"signoff.{name}() cannot be called while an event loop is running here; "
                f"use: await signoff.{name}_async(...)"
            )
        # Not while an exception is handled: every error of the run would show that one first.
        return asyncio.run(function(*args, **kwargs))

    blocking.__name__ = blocking.__qualname__ = name
    return blocking


async def run_async(
    workflow: Workflow | str,
    params: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    store: Store | None = None,
    home: str | Path | None = None,
    agents: Mapping[str, Agent] | None = None,
    limits: LimitsLike | None = None,
    observers: Sequence[Observer] = (),
    options: Mapping[str, Any] | None = None,
) -> RunResult:
    """Drives a new run to its end or its next wait.

    `workflow` may also be a target of `signoff run`, such as `"profile:python-module"`; `options`
    are those of its notation, by name.

    `home` is a project folder or its `.signoff/`. By default it is searched from the current
    folder upwards, and created there if there is none. `agents` are added to those of the
    settings. With a `store` of your own, nothing is read or written anywhere else.
    """
    run_limits = _limits(limits)
    async with _engine(store, home, agents, observers) as (engine, project):
        found = _found(workflow, project, options or {})
        return await engine.start(
            found.workflow, params, name=name, limits=run_limits, target=found.location
        )


async def resume_async(
    name: str,
    workflow: Workflow | None = None,
    *,
    store: Store | None = None,
    home: str | Path | None = None,
    agents: Mapping[str, Agent] | None = None,
    limits: LimitsLike | None = None,
    adopt: bool = False,
    switch: Mapping[str, str] | None = None,
    observers: Sequence[Observer] = (),
) -> RunResult:
    """Resumes a run from where it stopped; one that has ended reports how.

    Without a `workflow`, the one of the target that the run was started with is used.
    `switch` names agents that others replace from here on: `{"writer": "manual"}`.
    """
    run_limits = _limits(limits)
    async with _engine(store, home, agents, observers) as (engine, project):
        if project is not None:
            from signoff.app.people.answering import record_file_answers

            record_file_answers(project, project.run(name).name)
            workflow = workflow or project.find_again(project.run(name)).workflow
        if workflow is None:
            raise UsageError("resume() needs the workflow of a run in a store of your own")
        return await engine.resume(name, workflow, limits=run_limits, adopt=adopt, switch=switch)


run = _blocking(run_async)
resume = _blocking(resume_async)


def answer(
    where: InboxItem | int | str,
    value: Any,
    *,
    text: str = "",
    by: str = "",
    store: Store | None = None,
    home: str | Path | None = None,
) -> InboxItem:
    """Records a human's answer; `resume` then continues the run.

    `where` is a request of `RunResult.inbox`, its number, or the name of a run with one pending
    request. `value` is a text, an option, or True or False for an approval; `text` is the
    reason. `by` defaults to the current user. `store` and `home` are as in `run`.
    """
    from signoff.app.people.answering import AnswerInput, find_item, record_answer
    from signoff.app.runs.runs import catch_up

    with _store_only(store) if store is not None else _project(home, None, create=False) as project:
        # A caller that passes the request has seen it, so the answer is bound to what it showed.
        digest = where.digest if isinstance(where, InboxItem) else None
        item = where if isinstance(where, InboxItem) else find_item(project, str(where))
        done = record_answer(project, item.id, AnswerInput(value, text, by, digest))
        if store is None:
            catch_up(project, done.run)
        return done


def resume_context(
    run: str | None = None, *, store: Store | None = None, home: str | Path | None = None
) -> Any:
    """Returns where a run continues: its step, its last output, what is retried and what failed.

    `run` is the name of a run, by default the latest one. The type belongs to the notation of the
    run's workflow (`signoff.contracts.ResumeContext`); None if the run has ended, or if its
    notation has no such summary. `store` and `home` are as in `run`.
    """
    from signoff.app.runs.history import resume_report

    with _store_only(store) if store is not None else _project(home, None, create=False) as project:
        return resume_report(project, project.run(run))


def _found(workflow: Workflow | str, project: Project | None, options: Mapping[str, Any]) -> Target:
    """Returns a workflow, or the one that a target names, and how to find it again."""
    from signoff.app.runs.targets import Target

    if isinstance(workflow, Workflow):
        if options:
            raise UsageError("options= are for a target; a Workflow is compiled with its own")
        return Target(workflow, target_of(workflow, project.home.root) if project else "")
    if project is None:
        raise UsageError("a target is found in a project; with store=, pass a Workflow")
    from signoff.app.runs.targets import compile_context, resolve

    context = compile_context(
        project.home, project.settings, options, cwd=project.cwd, agents=project.agents
    )
    return resolve(workflow, project.cwd, context, project.settings.workflows)


def target_of(workflow: Workflow, root: Path) -> str:
    """Returns a target by which the command line finds a workflow again; empty if unknown.

    The workflow is searched among the globals of its handlers' modules.
    """
    for step in workflow.steps.values():
        module = sys.modules.get(getattr(step.handler, "__module__", None) or "")
        if module is None:
            continue
        for name, value in vars(module).items():
            if value is workflow:
                return _target_in(module, name, root)
    from signoff import plugins

    notation = plugins.notation(workflow.notation)
    # Only a workflow that stores its options can be compiled again from its name alone.
    if notation is None or not notation.scheme or "given" not in workflow.source:
        return ""
    return f"{notation.scheme}:{workflow.name}"


def _target_in(module: ModuleType, name: str, root: Path) -> str:
    if module.__name__ != "__main__":
        return f"{module.__name__}:{name}"
    # A script cannot be imported by name, but it has a path.
    file = getattr(module, "__file__", None)
    if not file:
        return ""
    path = Path(file).resolve()
    inside = path.is_relative_to(root.resolve())
    return f"{path.relative_to(root.resolve()).as_posix() if inside else path}:{name}"


@asynccontextmanager
async def _engine(
    store: Store | None,
    home: str | Path | None,
    agents: Mapping[str, Agent] | None,
    observers: Sequence[Observer],
) -> AsyncIterator[tuple[Engine, Project | None]]:
    """Opens the engine on a store, or on the project's database together with the project."""
    from signoff.agents.kinds import DEFAULT_AGENT
    from signoff.runtime.engine import Engine
    from signoff.runtime.sub_agents import roles_of

    if store is not None:
        observers = [*_log(store), *observers]
        own = dict(agents or {})
        roles = roles_of(DEFAULT_AGENT) if DEFAULT_AGENT in own else {}
        async with Engine(store, agents=own, default_roles=roles, observers=observers) as engine:
            yield engine, None
    else:
        with _project(home, agents) as project:
            try:
                log = _log(project.store, log_content=project.settings.log_content)
                async with project.engine([*log, *observers]) as engine:
                    yield engine, project
            finally:
                if project.observers:
                    import asyncio

                    # They may take a while, and other work of the program's loop must not wait.
                    await asyncio.to_thread(project.close_observers)


@contextmanager
def _store_only(store: Store) -> Iterator[Project]:
    """Yields a project with nothing but a store; there are no files to compare or to write."""
    from signoff.app.settings.home import Home
    from signoff.app.settings.project import Project
    from signoff.app.settings.settings import Settings

    nowhere = Path(os.devnull)
    yield Project(Home(nowhere), Settings(), store, nowhere)


@contextmanager
def _project(
    home: str | Path | None, agents: Mapping[str, Agent] | None, *, create: bool = True
) -> Iterator[Project]:
    from signoff.app.settings.home import init_home
    from signoff.app.settings.project import open_project
    from signoff.documents.home_folder import FOLDER, VARIABLE

    environment = dict(os.environ)
    cwd = Path.cwd()
    if home is not None:
        folder = Path(home).expanduser().absolute()
        environment[VARIABLE] = str(folder if folder.name == FOLDER else folder / FOLDER)
        if create:
            init_home(cwd, environment)
    with open_project(cwd, environment, create=create, agents=agents) as project:
        yield project


def _log(store: Store, *, log_content: bool = False) -> list[Observer]:
    """Returns an observer for Python's logging if the program has configured it."""
    import logging

    from signoff.views.run_log import LOGGER, LoggingObserver, events_before

    if not logging.getLogger(LOGGER).hasHandlers():
        return []
    return [LoggingObserver(log_content=log_content, history=partial(events_before, store))]


def _limits(limits: LimitsLike | None) -> Limits | None:
    if limits is None:
        return None
    try:
        return Limits.from_json(limits.to_json() if isinstance(limits, Limits) else limits)
    except ValueError as error:
        raise UsageError(str(error)) from error
