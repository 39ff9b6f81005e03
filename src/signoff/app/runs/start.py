"""Plans runs, starts them, and resumes them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from signoff import plugins
from signoff.agents.base import Health
from signoff.agents.kinds import MANUAL
from signoff.app.people.answering import record_file_answers, refuse_worker
from signoff.app.runs import targets
from signoff.app.runs.history import load_state
from signoff.app.runs.runs import Warn, catch_up
from signoff.app.settings import agents as agent_checks
from signoff.app.settings import settings as config
from signoff.app.settings.home import Home, expected_home, init_home, template, write_new
from signoff.app.settings.observers import observer_problems
from signoff.app.settings.project import WORKER_VARIABLE, Project, open_project, open_store
from signoff.app.settings.trust import check_stored_target, check_trust
from signoff.core import errors as er
from signoff.core import graph
from signoff.core.events import ANY_AGENT
from signoff.core.outcome import FINAL, Status
from signoff.core.remedies import Resume, StartRun
from signoff.core.spend import Limits
from signoff.core.stop_reason import error_of
from signoff.core.workflow import Workflow
from signoff.documents.regular_files import translate_write_errors
from signoff.notation import Ask, DryRunPlan, OptionKind
from signoff.runtime.engine import RunChanges
from signoff.runtime.ports import Observer
from signoff.runtime.result import RunResult
from signoff.runtime.store_port import RunRow
from signoff.runtime.sub_agents import roles_of


@dataclass(frozen=True)
class StartPlan:
    """Everything a run would start with."""

    target: targets.Target
    params: Mapping[str, Any]
    limits: Limits
    """The limits that would apply."""
    own_limits: Limits | None
    """The limits of the command line alone."""
    home: Home
    settings: config.Settings
    warnings: tuple[str, ...] = ()
    """Warnings about the settings."""
    switch: Mapping[str, str] = field(default_factory=dict)
    """The agents that the run to start again replaced, and their replacements."""
    code_root: Path | None = None
    """Where modules that the settings name are imported from; the project's folder by default."""

    def open(self, cwd: Path, environment: Mapping[str, str]) -> Project:
        """Opens the project of the run; creates its home if there is none."""
        if self.home.path.is_dir():
            # A home that its user has made by hand: its runs must stay out of git.
            ignore = self.home.path / ".gitignore"
            with translate_write_errors(ignore):
                write_new(ignore, template("gitignore"))
        else:
            init_home(cwd, environment)
        store, token = open_store(self.home, self.settings), environment.get(WORKER_VARIABLE, "")
        return Project(
            self.home, self.settings, store, cwd, worker_token=token, code_root=self.code_root
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the plan as plain values."""
        return {
            "dry_run": True,
            "target": self.target.location,
            "params": dict(self.params),
            "limits": self.limits.to_json(),
            **graph.data(self.target.workflow),
            **(planned.facts if (planned := self.dry_run()) else {}),
        }

    def not_ready(self, switch: Mapping[str, str] | None = None) -> dict[str, Health]:
        """Returns the agents that a run would ask and that could not answer now.

        `switch` maps agents to replacements. What a handler in Python asks is not known before.
        """

        asked, root = self.asked_agents(switch), self.code_root or self.home.root
        return agent_checks.find_not_ready(self.settings.agents, asked, root)

    def asked_agents(self, switch: Mapping[str, str] | None = None) -> list[Ask]:
        """Returns the agents of the settings that a run would ask."""
        workflow, roles = self.target.workflow, self.roles
        switch = switch or {}
        names = [
            (ask, switch.get(ask.agent) or switch.get(ANY_AGENT, ask.agent))
            for ask in asks_of(workflow, self.params)
        ]
        asks = [ask._replace(agent=roles.get(name, name)) for ask, name in names]
        return [ask for ask in dict.fromkeys(asks) if ask.agent not in workflow.agents]

    @property
    def asks_chosen_agent(self) -> bool:
        """Whether the workflow itself asks the agent that the user wants where it names none."""

        return targets.AGENT in self.target.workflow.source.get("given", {})

    @property
    def default_agent(self) -> str:
        """The agent that is asked where none is named."""

        return targets.default_agent(self.settings.agents)

    @property
    def roles(self) -> dict[str, str]:
        """The agents that play roles."""

        # The settings win over the workflow, as they do in a run.
        roles = roles_of(self.default_agent)
        return {**roles, **self.target.workflow.roles, **self.settings.roles}

    def replacements(self, named: Mapping[str, str]) -> dict[str, str]:
        """Returns which agents and roles others replace, given those that a user names.

        The empty name stands for the default agent. Raises `UnknownName` for a name on either side.
        """
        switch = {name or self.default_agent: other for name, other in named.items()}
        known = (
            *agent_checks.known_agents(self.settings.agents),
            *self.roles,
            *self.target.workflow.agents,
        )
        for name in (*switch, *switch.values()):
            if name not in known:
                raise er.UnknownName("agent", name, dict.fromkeys(known))
        return with_roles(switch, self.roles)

    def replaced_for_nothing(self, named: Iterable[str]) -> list[str]:
        """Returns which of these agents a run does not ask, as far as its notation knows."""
        workflow = self.target.workflow
        notation = plugins.notation(workflow.notation)
        if notation is None or not notation.asks:
            return []
        asked = {ask.agent for ask in asks_of(workflow, self.params)}
        asked |= {self.roles.get(name, name) for name in asked}
        return [name for name in named if name and name not in asked]

    def dry_run(self) -> DryRunPlan | None:
        """Returns what the workflow's notation reports about a run before it is started."""
        workflow = self.target.workflow
        notation = plugins.notation(workflow.notation)
        if notation is None or not notation.plan:
            return None
        planned: DryRunPlan = plugins.load(notation.plan)(workflow)
        return planned


def asks_of(workflow: Workflow, params: Mapping[str, Any]) -> Iterator[Ask]:
    """Yields the agents and roles that a run of a workflow asks, as far as that is known."""
    notation = plugins.notation(workflow.notation)
    if notation is not None and notation.asks:
        yield from (Ask(*each) for each in plugins.load(notation.asks)(workflow, params))
    yield from (Ask(step.agent) for step in workflow.steps.values() if step.agent)


def with_roles(switch: Mapping[str, str], roles: Mapping[str, str]) -> dict[str, str]:
    """Returns replacements of agents, with the roles that each of these agents plays."""
    played = {role: switch[agent] for role, agent in roles.items() if agent in switch}
    return {**played, **switch}


async def start(
    project: Project,
    target: targets.Target,
    params: Mapping[str, Any],
    *,
    name: str | None = None,
    limits: Limits | None = None,
    switch: Mapping[str, str] | None = None,
    observers: Sequence[Observer] = (),
) -> RunResult:
    """Drives a new run to its end or its next wait; `switch` maps agents to replacements."""
    _refuse_taken(project, name)
    async with project.engine(observers) as engine:
        return await engine.start(
            target.workflow, params, name=name, limits=limits, target=target.location, switch=switch
        )


def plan(
    cwd: Path,
    environment: Mapping[str, str],
    target: str,
    params: Mapping[str, Any],
    *,
    name: str | None = None,
    command_line: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    agent: str = "",
    earlier: Mapping[str, Any] | None = None,
) -> StartPlan:
    """Checks everything that can be checked without starting; raises the same errors.

    Nothing is written, not even a project home. `options` are those of the target's notation,
    by name, and `agent` is the one to ask where none is named. `earlier` are values of a run to
    start again: those that it prepared are left out.
    """
    home = expected_home(cwd, environment)
    settings = config.load_settings(home, environment, command_line)
    # Nothing of the project is imported or asked before its user trusts it.
    check_trust(home, settings)
    if problems := [
        *agent_checks.unknown_options(settings, home.root),
        *observer_problems(settings, home.root),
    ]:
        raise er.ConfigError("\n".join(map(str, problems)))
    context = replace(targets.compile_context(home, settings, options, cwd=cwd), agent=agent)
    if agent and agent not in (context.agent_names or ()):
        raise er.UsageError(str(er.UnknownName("agent", agent, context.agent_names or ())))
    found = targets.resolve(target, cwd, context, settings.workflows)
    values = found.workflow.bind({**found.workflow.taken(earlier or {}), **params})
    file = config.database_file(settings.database, home.path)
    if name is not None and (file is None or file.exists()):
        with Project(home, settings, open_store(home, settings), cwd) as project:
            _refuse_taken(project, name)
    # Whoever starts the run pays for it, so their limits go before those of the workflow's author.
    own_limits = config.command_line_limits(settings)
    limits = (own_limits or Limits()).over(found.workflow.limits).over(settings.limits)
    warnings = tuple(map(str, agent_checks.unknown_kinds(settings)))
    return StartPlan(found, values, limits, own_limits, home, settings, warnings)


def plan_again(
    cwd: Path,
    environment: Mapping[str, str],
    run: str,
    params: Mapping[str, Any],
    *,
    command_line: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    **others: Any,
) -> StartPlan:
    """Plans a new run with the target, parameters, options, agents and limits of another one.

    What the caller names wins. The `others` are as in `plan`.
    """
    with open_project(cwd, environment) as project:
        row, root = project.run(run), project.home.root
        if not row.target:
            raise er.UsageError(
                f"run {run!r} was started from Python and does not record where its workflow is",
                remedy=StartRun(),
            )
        check_stored_target(project.home, project.settings, row.target)
        state, stored = (
            load_state(project, row),
            targets.stored_options(project.store.description(row.id)),
        )
    limits = {f"limits.{key}": str(value) for key, value in state.limits.to_json().items()}
    planned = plan(
        root,
        environment,
        row.target,
        params,
        command_line={**limits, **(command_line or {})},
        options={**stored, **targets.portable_options(options or {}, cwd, root)},
        earlier=state.params,
        **others,
    )
    return replace(planned, switch=dict(state.stand_ins))


def _refuse_taken(project: Project, name: str | None) -> None:
    """Raises `NameTaken` if a run has this name: `run` never continues an existing run."""
    if name is not None and project.has_run(name):
        raise er.NameTaken(f"run {name!r} already exists; choose another name", remedy=Resume(name))


# An agent can write any file, so a path or a module of its choice would let it run its own code
# where signoff runs. What is in the catalog was installed: it is in the project's `.signoff/flows`,
# in a folder of the settings, or in a package. So programs and agents start only that.


@dataclass(frozen=True)
class StartRequest:
    """What a caller asks to start."""

    workflow: str
    params: Mapping[str, Any]
    options: Mapping[str, Any]
    """Of the workflow's notation, such as the goal of a flow; of a review, those of its command."""
    limits: Mapping[str, Any]


def startable(cwd: Path, environment: Mapping[str, str]) -> targets.Catalog:
    """Returns the workflows that can be started from a folder."""
    home = expected_home(cwd, environment)
    return targets.catalog(home, config.load_settings(home, environment))


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
    settings = config.load_settings(planned.home, environment)
    project = planned.target.workflow.limits.over(settings.limits)
    # Only downwards. An agent that could raise a limit would decide what its user pays.
    own = planned.own_limits.at_most(project)
    return replace(planned, own_limits=own, limits=own.over(project))


def _plan(
    cwd: Path, environment: Mapping[str, str], request: StartRequest, *, agent: bool
) -> StartPlan:
    limits = {name: str(value) for name, value in request.limits.items()}
    # The catalog is read for each call: a workflow that was just installed can be started at once.
    entry = startable(cwd, environment).find(request.workflow, cwd)
    if entry.target == targets.REVIEW:
        if request.params:
            raise er.UsageError("a review has options and no parameters")
        planner = next(each.review for each in plugins.notations() if each.review)
        planned: StartPlan = plugins.load(planner)(cwd, request.options, environment, limits)
        return planned
    root = expected_home(cwd, environment).root
    _check_options(request.options, root, cwd, agent=agent)
    # Files are seen from the folder of whoever asks.
    paths = {each.name for each in plugins.options_of("run") if each.kind is OptionKind.FILE}
    options = {
        name: str(cwd / value) if name in paths else value
        for name, value in request.options.items()
    }
    return plan(
        root,
        environment,
        entry.target,
        request.params,
        command_line={f"limits.{name}": value for name, value in limits.items()},
        options=options,
    )


def _check_options(options: Mapping[str, Any], root: Path, cwd: Path, *, agent: bool) -> None:
    """Raises an error for options that an agent may not set, and files outside of the project."""
    known = {each.name: each for each in plugins.options_of("run")}
    for name, value in options.items():
        if name not in known:
            raise er.UnknownName("option", name, known)
        kind = known[name].kind
        if kind is OptionKind.FLAG:
            if agent:
                # A flag such as the one that allows a flow's scripts extends what a run may do.
                raise er.NotAllowed(
                    f"an agent cannot set the option {name!r}; a human can start it"
                )
        elif kind is not OptionKind.LIST and not isinstance(value, str):
            raise er.UsageError(f"the option {name!r} must be a text, not {value!r}")
        if kind is OptionKind.FILE and not _inside(cwd / value, root):
            raise er.UsageError(
                f"the option {name!r} must name a file of the project; {value!r} is none"
            )


def _inside(path: Path, root: Path) -> bool:
    try:
        return path.is_file() and path.resolve().is_relative_to(root.resolve())
    except (OSError, ValueError):
        return False


FROM_OUTSIDE = {ANY_AGENT: MANUAL}
"""The agent switch of a run whose work is done by external workers."""

DUE = (Status.PARKED, Status.WAITING)
"""A waiting run is due once a deadline has passed: then its default answer counts."""


@dataclass(frozen=True)
class Resumed:
    """The result of resuming one of several runs."""

    run: str
    result: RunResult | None
    error: er.SignoffError | None = None


async def resume(
    project: Project,
    name: str | None = None,
    *,
    limits: Limits | None = None,
    adopt: bool = False,
    target: str | None = None,
    switch: Mapping[str, str] | None = None,
    params: Mapping[str, Any] | None = None,
    observers: Sequence[Observer] = (),
    warn: Warn = lambda _warning: None,
) -> RunResult:
    """Resumes a run; answer files in its folder are recorded first.

    `switch` maps agents to their replacements from now on; `params` corrects parameters.
    """
    changes = RunChanges(limits, adopt, switch or {}, params or {})
    if changes.are_decisions or target is not None:
        refuse_worker(project.worker_token, "change how a run continues")
    row = project.run(name)
    if row.status in FINAL:
        # The engine will not run again, so missing files of the run directory are written here.
        catch_up(project, row.name, warn)
    workflow = prepare(project, row, target, warn)
    switches = _with_roles(project, row, changes.switch, workflow, warn)
    async with project.engine(observers) as engine:
        return await engine.resume(
            row.name, workflow, limits=limits, adopt=adopt, switch=switches, params=params
        )


async def change(
    project: Project, row: RunRow, changes: RunChanges, warn: Warn = lambda _warning: None
) -> None:
    """Records how a run is to continue, for the process that resumes it."""
    if not (changes.are_decisions or changes.limits):
        return
    if changes.are_decisions:
        refuse_worker(project.worker_token, "change how a run continues")
    workflow = project.find_again(row).workflow
    switches = _with_roles(project, row, changes.switch, workflow, warn)
    async with project.engine() as engine:
        await engine.change(row.name, workflow, replace(changes, switch=switches))


def due_runs(project: Project) -> list[RunRow]:
    """Returns the runs that are due, the longest overdue first."""
    rows = project.store.rows(status=DUE, due_before=project.clock.now())
    return sorted(rows, key=lambda row: row.due_at or 0.0)


async def resume_due(
    project: Project,
    *,
    limits: Limits | None = None,
    observers: Sequence[Observer] = (),
    warn: Warn = lambda _warning: None,
) -> list[Resumed]:
    """Resumes all due runs; an error in one does not stop the others."""
    async with project.engine(observers) as engine:

        async def one(row: RunRow) -> Resumed:
            try:
                workflow = prepare(project, row, None, warn)
                return Resumed(row.name, await engine.resume(row.name, workflow, limits=limits))
            except er.SignoffError as error:
                return Resumed(row.name, None, error)

        return list(await asyncio.gather(*(one(row) for row in due_runs(project))))


def _with_roles(
    project: Project,
    row: RunRow,
    switch: Mapping[str, str],
    workflow: Workflow,
    warn: Warn,
) -> dict[str, str]:
    """Returns the switches, extended by the roles that each switched agent plays.

    Raises `ConfigError` if an agent would have to do what its kind cannot, such as writing.
    """
    if not switch:
        return {}

    roles = {**project.default_roles, **project.settings.roles}
    known = {
        *agent_checks.known_agents(project.settings.agents),
        *project.agents,
        *roles,
        *workflow.agents,
    }
    state = load_state(project, row)
    asked = asks_of(workflow, state.params)
    replaced = [each._replace(agent=switch[each.agent]) for each in asked if each.agent in switch]
    # Found now and not when the step asks: by then others have been paid for.
    agent_checks.refuse_unfit(project.settings.agents, replaced)
    # A workflow may ask an agent that no settings name, and its error may have stopped the run.
    error = error_of(state.status, state.stop_reason)
    known |= {ANY_AGENT, *([error.agent] if error is not None else [])}
    for agent in switch:
        if agent not in known:
            warn(f"unknown agent or role {agent!r}; only steps that name it are switched")
    return with_roles(switch, roles)


def prepare(project: Project, row: RunRow, target: str | None, warn: Warn) -> Workflow:
    """Finds a run's workflow, then records its answer files.

    The order matters: a file is used only once, so a missing workflow must be reported first.
    """
    found = project.find(target, row) if target is not None else project.find_again(row)
    for warning in record_file_answers(project, row.name):
        warn(warning)
    return found.workflow
