"""Starts runs, and plans them for a dry run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from signoff import plugins
from signoff.agents.base import Health
from signoff.app.agents import known_agents, unknown_kinds, unknown_options, unusable_files
from signoff.app.home import Home, expected_home, init_home, keep_runs_out_of_git
from signoff.app.notations import compile_context
from signoff.app.observers import observer_problems
from signoff.app.project import WORKER_VARIABLE, Project
from signoff.app.settings import Settings, command_line_limits, database_file, load_settings
from signoff.app.stores import open_store
from signoff.app.targets import Target, resolve
from signoff.app.trust import check_stored_target, check_trust
from signoff.core import graph
from signoff.core.events import ANY_AGENT
from signoff.core.spend import Limits
from signoff.core.workflow import Workflow
from signoff.errors import ConfigError, NameTaken, UnknownName, UsageError
from signoff.notation import Ask, DryRunPlan
from signoff.remedies import Resume, StartRun
from signoff.runtime.ports import Observer
from signoff.runtime.result import RunResult


@dataclass(frozen=True)
class StartPlan:
    """Everything a run would start with."""

    target: Target
    params: Mapping[str, Any]
    limits: Limits
    """The limits that would apply."""
    own_limits: Limits | None
    """The limits of the command line alone."""
    home: Home
    settings: Settings
    warnings: tuple[str, ...] = ()
    """Warnings about the settings."""
    switch: Mapping[str, str] = field(default_factory=dict)
    """The agents that the run to start again replaced, and their replacements."""
    code_root: Path | None = None
    """Where modules that the settings name are imported from; the project's folder by default."""

    def open(self, cwd: Path, environment: Mapping[str, str]) -> Project:
        """Opens the project of the run; creates its home if there is none."""
        if self.home.path.is_dir():
            keep_runs_out_of_git(self.home)
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
        from signoff.app.readiness import find_not_ready

        asked, root = self.asked_agents(switch), self.code_root or self.home.root
        return find_not_ready(self.settings.agents, asked, root)

    def asked_agents(self, switch: Mapping[str, str] | None = None) -> list[Ask]:
        """Returns the agents of the settings that a run would ask."""
        workflow, roles = self.target.workflow, self.roles
        names = [
            (ask, _replaced(ask.agent, switch or {})) for ask in asks_of(workflow, self.params)
        ]
        asks = [ask._replace(agent=roles.get(name, name)) for ask, name in names]
        return [ask for ask in dict.fromkeys(asks) if ask.agent not in workflow.agents]

    @property
    def asks_chosen_agent(self) -> bool:
        """Whether the workflow itself asks the agent that the user wants where it names none."""
        from signoff.app.notations import AGENT

        return AGENT in self.target.workflow.source.get("given", {})

    @property
    def default_agent(self) -> str:
        """The agent that is asked where none is named."""
        from signoff.app.notations import default_agent

        return default_agent(self.settings.agents)

    @property
    def roles(self) -> dict[str, str]:
        """The agents that play roles."""
        from signoff.runtime.dispatch import roles_of

        # The settings win over the workflow, as they do in a run.
        roles = roles_of(self.default_agent)
        return {**roles, **self.target.workflow.roles, **self.settings.roles}

    def replacements(self, named: Mapping[str, str]) -> dict[str, str]:
        """Returns which agents and roles others replace, given those that a user names.

        The empty name stands for the default agent. Raises `UnknownName` for a name on either side.
        """
        switch = {name or self.default_agent: other for name, other in named.items()}
        known = (*known_agents(self.settings.agents), *self.roles, *self.target.workflow.agents)
        for name in (*switch, *switch.values()):
            if name not in known:
                raise UnknownName("agent", name, dict.fromkeys(known))
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


def _replaced(name: str, switch: Mapping[str, str]) -> str:
    return switch.get(name) or switch.get(ANY_AGENT, name)


async def start(
    project: Project,
    target: Target,
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
    settings = load_settings(home, environment, command_line)
    check_trust(home, settings)
    if problems := [
        *unknown_options(settings, home.root),
        *observer_problems(settings, home.root),
    ]:
        raise ConfigError("\n".join(map(str, problems)))
    context = replace(compile_context(home, settings, options, cwd=cwd), agent=agent)
    if agent and agent not in (context.agent_names or ()):
        raise UsageError(str(UnknownName("agent", agent, context.agent_names or ())))
    found = resolve(target, cwd, context, settings.workflows)
    values = found.workflow.bind({**found.workflow.taken(earlier or {}), **params})
    file = database_file(settings.database, home.path)
    if name is not None and (file is None or file.exists()):
        with Project(home, settings, open_store(home, settings), cwd) as project:
            _refuse_taken(project, name)
    own_limits = command_line_limits(settings)
    limits = (own_limits or Limits()).over(found.workflow.limits).over(settings.limits)
    warnings = tuple(map(str, (*unknown_kinds(settings), *unusable_files(settings, home.root))))
    return StartPlan(found, values, limits, own_limits, home, settings, warnings)


def plan_again(
    cwd: Path,
    environment: Mapping[str, str],
    run: str,
    params: Mapping[str, Any],
    *,
    name: str | None = None,
    command_line: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    agent: str = "",
) -> StartPlan:
    """Plans a new run with the target, parameters, options, agents and limits of another one.

    What the caller names wins.
    """
    from signoff.app.history import load_state
    from signoff.app.notations import portable_options, stored_options
    from signoff.app.project import open_project

    with open_project(cwd, environment) as project:
        row, root = project.run(run), project.home.root
        if not row.target:
            raise UsageError(
                f"run {run!r} was started from Python and does not record where its workflow is",
                remedy=StartRun(),
            )
        check_stored_target(project.home, project.settings, row.target)
        state, stored = load_state(project, row), stored_options(project.store.description(row.id))
    limits = {f"limits.{key}": str(value) for key, value in state.limits.to_json().items()}
    planned = plan(
        root,
        environment,
        row.target,
        params,
        name=name,
        command_line={**limits, **(command_line or {})},
        options={**stored, **portable_options(options or {}, cwd, root)},
        agent=agent,
        earlier=state.params,
    )
    return replace(planned, switch=dict(state.stand_ins))


def _refuse_taken(project: Project, name: str | None) -> None:
    """Raises `NameTaken` if a run has this name: `run` never continues an existing run."""
    if name is not None and project.has_run(name):
        raise NameTaken(f"run {name!r} already exists; choose another name", remedy=Resume(name))
