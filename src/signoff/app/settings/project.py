"""An open project: its home, its settings, its runs, and an engine to drive them.

Every use case takes one. A surface opens it once and closes it; tests build one around
a memory store.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from signoff import plugins
from signoff.app.runs.next_commands import next_commands, with_file
from signoff.app.settings import trust
from signoff.app.settings.home import Home, find_home, init_home, need_home
from signoff.app.settings.settings import FILE, SCHEME, Settings, database_file, load_settings
from signoff.core import errors as er
from signoff.core.remedies import Resume, StartRun
from signoff.documents.python_files import make_importable
from signoff.runtime.environment import Secrets
from signoff.runtime.ports import Agent, Clock, Observer, SystemClock
from signoff.runtime.store_port import RunRow, Store, StoreKind

if TYPE_CHECKING:
    from signoff.app.runs.targets import Target
    from signoff.core.run_state import RunState
    from signoff.notation import Notation
    from signoff.runtime.engine import Engine
    from signoff.store.run_layout import EndView, Layout
    from signoff.views.queued import QueuedObserver
    from signoff.views.run_directory.directory import RunDirectory


WORKER_VARIABLE = "SIGNOFF_WORKER_TOKEN"
"""The environment variable that an external worker gets its token in."""


@dataclass
class Project:
    """Everything a use case needs."""

    home: Home
    settings: Settings
    store: Store
    cwd: Path
    clock: Clock = field(default_factory=SystemClock)
    agents: Mapping[str, Agent] = field(default_factory=dict)
    """Agents that a program provides; they override those of the settings."""
    worker_token: str = ""
    """The token of an external worker, which may not decide anything; empty for a human."""
    for_agent: bool = False
    """Whether an agent acts here: it answers only what workflows open to agents."""
    code_root: Path | None = None
    """Where modules that the settings name are imported from; the project's folder by default."""
    observers: list[QueuedObserver] | None = None
    """Those of the settings, once an engine was opened; they watch until the project is closed."""

    def __enter__(self) -> Self:
        """Returns itself; the project is already open."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Ends the observers and closes the database."""
        self.close_observers()
        self.store.close()

    def close_observers(self) -> None:
        """Ends the observers of the settings, within a bounded time."""
        if self.observers:
            from signoff.views.queued import close_observers

            close_observers(self.observers)
        self.observers = None

    @property
    def secrets(self) -> Secrets:
        """The values of environment variables that are never stored."""
        # Names of variables are settings, so they are known before any of the secrets is used.
        options = [each.options for each in self.settings.agents.values()]
        keys = [each[name] for each in options for name in each if name.endswith("key_env")]
        signing = [each["secret_env"] for each in self.settings.notify if each.get("secret_env")]
        return Secrets.of(os.environ, map(str, [*keys, *signing]))

    @property
    def default_roles(self) -> Mapping[str, str]:
        """Agents by role, for roles that neither the settings nor the workflow assign."""
        from signoff.app.runs.targets import default_agent
        from signoff.runtime.sub_agents import roles_of

        return roles_of(default_agent([*self.settings.agents, *self.agents]))

    @asynccontextmanager
    async def engine(self, observers: Sequence[Observer] = ()) -> AsyncIterator[Engine]:
        """Gives an engine for this project; run directories are up to date when it exits."""
        # Imported here because commands that only list runs should stay fast.
        from signoff.app.settings.agents import agent_limits, build_agents
        from signoff.runtime.engine import Engine
        from signoff.store.run_files import RunFiles
        from signoff.views.run_directory.directory import Projection

        trust.check_trust(self.home, self.settings)
        make_importable([self.code_root or self.home.root])
        if self.observers is None and self.settings.is_observed:
            from signoff.app.settings.observers import build_observers

            self.observers = build_observers(self)
        projection = Projection(self.directory())
        engine = Engine(
            self.store,
            agents={**build_agents(self.settings.agents), **self.agents},
            clock=self.clock,
            observers=[projection, *(self.observers or ()), *observers],
            files=RunFiles(self.home.runs),
            agent_limits=agent_limits(self.settings.agents),
            limits=self.settings.limits,
            roles=self.settings.roles,
            default_roles=self.default_roles,
            pass_env=self.settings.pass_env,
            secrets=self.secrets,
            presence=self.settings.presence_required,
        )
        try:
            async with engine:
                yield engine
        finally:
            projection.close()

    def find(self, target: str, row: RunRow | None = None) -> Target:
        """Returns the workflow of a target, relative to the current folder.

        With `row`, it is compiled with the options that the run was started with.
        """
        if row is not None:
            trust.check_stored_target(self.home, self.settings, "")
        return self._resolved(target, self.cwd, row)

    def find_again(self, row: RunRow) -> Target:
        """Returns the workflow of a run, compiled with the options it was started with."""
        if not row.target:
            raise er.UsageError(
                f"run {row.name!r} was started from Python and does not record where its workflow "
                "is; name it as package.module:NAME",
                remedy=Resume(row.name, target=True),
            )
        # Its user named it when the run was started, but it may have changed since.
        trust.check_stored_target(self.home, self.settings, row.target)
        try:
            return self._resolved(row.target, self.home.root, row)
        except (er.InvalidWorkflow, er.NotTrusted):
            raise
        except er.UsageError as error:
            raise er.UsageError(
                f"{error}; if the workflow has moved, name it again",
                remedy=Resume(row.name, target=True),
            ) from error

    def _resolved(self, target: str, cwd: Path, row: RunRow | None) -> Target:
        from signoff.app.runs.targets import compile_context, resolve, stored_context

        context = compile_context(self.home, self.settings, agents=self.agents)
        if row is not None:
            context = stored_context(self.store.description(row.id), context)
        return resolve(target, cwd, context, self.settings.workflows)

    def notation_of(self, row: RunRow) -> Notation | None:
        """Returns the notation of a run's workflow; None for Python or a missing plug-in."""

        return plugins.notation(json.loads(self.store.description(row.id)).get("notation", ""))

    def end_view(self, row: RunRow, state: RunState) -> EndView | None:
        """Returns what a run leaves to its user, if it has ended and its notation shows that."""
        return self.layout(row).end(state, json.loads(self.store.description(row.id)))

    def layout(self, row: RunRow) -> Layout:
        """Returns how a run is shown as files."""
        return _layout_of(json.loads(self.store.description(row.id)).get("notation", ""))

    def run(self, name: str | None = None) -> RunRow:
        """Returns a run by name, or the latest one."""
        if name is not None:
            return self.store.row(name)
        latest = self.store.rows(limit=1)
        if not latest:
            raise er.UsageError("there are no runs yet", remedy=StartRun())
        return latest[0]

    def has_run(self, name: str) -> bool:
        """Tells whether a run of this name exists."""
        try:
            return bool(self.store.row(name))
        except er.UnknownName:
            return False

    def directory(self) -> RunDirectory:
        """Returns the writer of the run directories."""
        from signoff.views.run_directory.directory import RunDirectory

        return RunDirectory(
            self.home.runs, self.store, layout_of=_layout_of, next_steps=_next_steps
        )

    def folder(self, run: str) -> Path:
        """Returns the folder of a run's readable files."""
        return self.home.runs / run


def _layout_of(notation: str) -> Layout:
    """Returns how the runs of a notation are shown as files."""
    from signoff.store.run_layout import Layout

    found = plugins.notation(notation)
    layout: type[Layout] = plugins.load(found.layout) if found and found.layout else Layout
    return layout()


def _next_steps(row: RunRow, state: RunState) -> list[str]:
    """Returns the commands that continue a run that has stopped."""
    from signoff.core.stop_reason import remedies

    found = remedies(row.name, state.status, state.stop_reason, state.due_at)
    return next_commands(with_file(found, row.target))


def open_project(
    cwd: Path,
    environment: Mapping[str, str],
    *,
    command_line: Mapping[str, Any] | None = None,
    create: bool = False,
    drives: bool = False,
    agents: Mapping[str, Agent] | None = None,
) -> Project:
    """Opens the project around `cwd`; with `create`, creates a home there if there is none.

    `drives` says that it is going to drive runs, so that a project that is not trusted is refused
    before anything is recorded.
    """
    if create and find_home(cwd, environment) is None:
        init_home(cwd, environment)
    home = need_home(cwd, environment)
    settings = load_settings(home, environment, command_line)
    if drives:
        trust.check_trust(home, settings)
    store, token = open_store(home, settings), environment.get(WORKER_VARIABLE, "")
    return Project(home, settings, store, cwd, agents=agents or {}, worker_token=token)


def open_store(home: Home, settings: Settings) -> Store:
    """Opens a project's database; creates it if it does not exist."""
    # Connecting to a server sends it something, and a file could be any file of the user.
    trust.check_setting(home, settings, "database")
    # Whether it exists is asked before it is opened, which creates it: a database that the user
    # makes is the user's own.
    file = database_file(settings.database, home.path)
    is_new = file is not None and not file.exists()
    store = open_database(settings.database, home.path)
    if is_new:
        trust.trust_database(home, settings)
    return store


def open_database(address: str, folder: Path) -> Store:
    """Opens a database by its URL, or by the path of its file relative to a folder."""
    file = database_file(address, folder)
    if file is not None:
        # The default, and most commands do little else: it does not look for plug-ins.
        from signoff.store.sqlite import SqliteStore

        return SqliteStore(file)
    return _server_kind(address).open(address)


def absolute_address(address: str, folder: Path) -> str:
    """Returns an address that names the same database from every folder."""
    file = database_file(address, folder)
    return address if file is None else str(file.absolute())


def set_up(address: str) -> int:
    """Creates or upgrades the tables of a server; returns the number of their schema."""
    create = _server_kind(address).set_up
    if create is None:
        raise _no_setup()
    return create(address)


def setup_sql(address: str, role: str) -> str:
    """Returns the SQL with which an administrator sets up a server for a role.

    An empty role means the user of the address.
    """
    sql = _server_kind(address).setup_sql
    if sql is None:
        raise _no_setup()
    return sql(address, role)


def current_address(cwd: Path, environment: Mapping[str, str]) -> str:
    """Returns where the runs of the current project are: a path, or a URL."""
    return load_settings(find_home(cwd, environment), environment).database


def _server_kind(address: str) -> StoreKind:
    """Returns the kind of store that an address names, which is not a file."""

    scheme = SCHEME.match(address)
    name = scheme[1].lower() if scheme is not None else FILE
    if name == FILE:
        raise _no_setup()
    kind = plugins.store_kind(name)
    if kind is None:
        valid = ", ".join(f"{each}://" for each in sorted({*plugins.paths("stores"), FILE}))
        raise er.ConfigError(f"unsupported kind of database {name!r}; valid: a path, {valid}")
    return kind


def _no_setup() -> er.UsageError:
    return er.UsageError("this database is set up when it is opened; there is nothing to do")
