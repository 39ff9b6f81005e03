"""Builds the observers that the settings turn on."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from signoff.app.next_commands import answer_commands
from signoff.app.observer_settings import ObserverFactory, observer_factory
from signoff.app.run_records import stored_record
from signoff.app.settings import Settings
from signoff.errors import ConfigError
from signoff.observers.queued import QueuedObserver
from signoff.observers.setup import ObserverSetup
from signoff.runtime.ports import Observer
from signoff.runtime.store_port import Store

if TYPE_CHECKING:
    from signoff.app.project import Project

log = logging.getLogger("signoff")


def build_observers(project: Project) -> list[QueuedObserver]:
    """Returns the observers that the settings turn on, each with a thread of its own.

    Raises `ConfigError` for invalid settings. One that cannot be started for another reason, such
    as a port that is in use, is reported and left out: it must not keep a run from starting.
    """
    setup = ObserverSetup(
        open_store=project.store.reopen,
        record_of=lambda store, run: stored_record(store, store.row(run)),
        metrics_text=lambda store: _metrics_text(project, store),
        folder=project.home.path,
        clock=project.clock,
        log_content=project.settings.log_content,
        secrets=project.secrets,
        answer_commands=lambda item, form: answer_commands(item, form, project.clock.now()),
    )
    built = []
    if project.settings.has_log:
        settings = project.settings
        log_options = {"file": settings.log_file, "level": settings.run_log_level}
        log_output = _build("log_file", _log_output, setup, log_options)
        built += [QueuedObserver("log", log_output)] if log_output is not None else []
    if project.settings.notify:
        notifier = _build("notify", _notifier, setup, _notify_options(project.settings))
        built += [QueuedObserver("notify", notifier)] if notifier is not None else []
    for name, each in project.settings.observe.items():
        factory = observer_factory(name, each.kind)
        observer = _build(f"observe.{name}", factory, setup, each.options)
        if observer is not None:
            built.append(QueuedObserver(name, observer))
    return built


def _metrics_text(project: Project, store: Store) -> str:
    # Imported here because only the server of metrics needs it, and when it is asked.
    from signoff.app.metrics import metrics_text

    return metrics_text(store, project.clock.now())


def _log_output(setup: ObserverSetup, **options: Any) -> Observer:
    # Imported here because it loads the handlers of the standard library.
    from signoff.observers.run_log import LogOutput

    return LogOutput(setup, **options)


def _notifier(setup: ObserverSetup, **options: Any) -> Observer:
    # Imported here because it loads clients for programs and for HTTP.
    from signoff.observers.notifications.notifier import Notifier

    return Notifier(setup, **options)


def _notify_options(settings: Settings) -> dict[str, Any]:
    return {"targets": settings.notify, "pass_env": settings.pass_env}


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
