"""Finds and builds the observers that the settings turn on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from signoff import plugins
from signoff.agents.base import option_names
from signoff.app.runs.next_commands import answer_commands
from signoff.app.runs.run_records import metrics_text, stored_record
from signoff.app.settings.settings import Settings, origin_of, unknown_option_problems
from signoff.core.errors import ConfigError, Problem
from signoff.documents.python_files import make_importable
from signoff.runtime.ports import Observer
from signoff.views.queued import ObserverSetup, QueuedObserver

if TYPE_CHECKING:
    from signoff.app.settings.project import Project

log = logging.getLogger("signoff")

ObserverFactory = Callable[..., Observer]
"""`(setup, **options) -> observer`"""


def observer_problems(settings: Settings, root: Path) -> Iterator[Problem]:
    """Yields a problem for each unknown observer and each option that one does not take."""
    for name, each in settings.observe.items():
        if ":" in each.kind:
            make_importable([root])
        key = f"observe.{name}"
        try:
            names = option_names(plugins.factory("observers", key, each.kind))
        except ConfigError as error:
            yield Problem(origin_of(settings, f"{key}.kind", key), str(error))
            continue
        if names is not None:
            # The first parameter is the setup.
            yield from unknown_option_problems(settings, key, each.options, names[1:])


def build_observers(project: Project) -> list[QueuedObserver]:
    """Returns the observers that the settings turn on, each with a thread of its own.

    Raises `ConfigError` for invalid settings. One that cannot be started for another reason, such
    as a port that is in use, is reported and left out: it must not keep a run from starting.
    """
    setup = ObserverSetup(
        open_store=project.store.reopen,
        record_of=lambda store, run: stored_record(store, store.row(run)),
        metrics_text=lambda store: metrics_text(store, project.clock.now()),
        folder=project.home.path,
        clock=project.clock,
        log_content=project.settings.log_content,
        secrets=project.secrets,
        answer_commands=lambda item, form: answer_commands(item, form, project.clock.now()),
    )
    built = []
    for name, key, factory, options in _chosen(project.settings):
        observer = _build(key, factory, setup, options)
        if observer is not None:
            built.append(QueuedObserver(name, observer))
    return built


def _chosen(settings: Settings) -> Iterator[tuple[str, str, ObserverFactory, Mapping[str, Any]]]:
    """Yields the name, the setting, the class and the options of each observer.

    Classes are imported only if they are used: some load clients for HTTP.
    """
    if settings.has_log:
        output = plugins.load("signoff.views.run_log:LogOutput")
        log_options = {"file": settings.log_file, "level": settings.run_log_level}
        yield "log", "log_file", output, log_options
    if settings.notify:
        notifier = plugins.load("signoff.views.notifications:Notifier")
        targets = {"targets": settings.notify, "pass_env": settings.pass_env}
        yield "notify", "notify", notifier, targets
    for name, each in settings.observe.items():
        key = f"observe.{name}"
        yield name, key, plugins.factory("observers", key, each.kind), each.options


def _build(
    key: str, factory: ObserverFactory, setup: ObserverSetup, options: Mapping[str, Any]
) -> Observer | None:
    try:
        return factory(setup, **options)
    except (TypeError, ConfigError) as error:
        raise ConfigError(f"{key}: {error}") from error
    except Exception as error:  # whatever an observer raises, runs continue
        log.warning("%s is off, because it could not be started", key, exc_info=error)
        return None
