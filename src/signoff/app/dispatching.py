"""Opens the dispatcher of a project, and tells it about runs."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from urllib.parse import urlsplit

from signoff import plugins
from signoff.app.project import Project
from signoff.app.trust import check_trust
from signoff.core.digest import text_digest
from signoff.errors import ConfigError, UnknownName
from signoff.remedies import Install
from signoff.runtime.ports import Dispatcher, DispatcherUnavailable
from signoff.runtime.store_port import RunRow

STORE = "store"
"""The scheme of the dispatcher that needs nothing but the store."""

TEMPORAL = "temporal"
"""The scheme, and the extra, of the dispatcher that needs a client."""


def open_dispatcher(project: Project) -> Dispatcher:
    """Returns what brings this project's runs to workers; raises `ConfigError`."""
    return dispatcher_of(project.settings.dispatch, _scope(project))


def dispatcher_of(url: str, scope: str) -> Dispatcher:
    """Returns the dispatcher with a URL; `scope` keeps the runs of several stores apart."""
    scheme = urlsplit(url).scheme or STORE
    known = plugins.dispatchers()
    if scheme not in known:
        raise ConfigError(f"dispatch: {UnknownName('dispatcher', scheme, sorted(known))}")
    if scheme == TEMPORAL and find_spec("temporalio") is None:
        raise ConfigError("dispatch: the Temporal client is not installed", remedy=Install(scheme))
    dispatcher: Dispatcher = plugins.load(known[scheme])(url, scope)
    return dispatcher


async def announce(project: Project, row: RunRow, *, new: bool = False) -> None:
    """Tells the dispatcher that a run may continue.

    One that cannot be reached is only a warning: the run is queued in the store, where workers
    look for it too.
    """
    if not project.settings.dispatch:
        return
    check_trust(project.home, project.settings)
    dispatcher, needs = open_dispatcher(project), row.needs or ()
    try:
        if new:
            await dispatcher.submit(row.name, needs)
        elif row.due_at is not None:
            await dispatcher.at(row.name, needs, row.due_at)
        else:
            await dispatcher.wake(row.name, needs)
    except DispatcherUnavailable as error:
        logging.getLogger("signoff").warning("%s", error)


def _scope(project: Project) -> str:
    """Keeps the runs of several stores apart: their names may be equal."""
    local = project.store.local_file()
    return text_digest(str(local) if local is not None else project.settings.database)[:12]
