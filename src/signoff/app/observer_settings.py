"""Finds the observers that the settings name, and checks their settings without starting them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from signoff import plugins
from signoff.agents.options import option_names
from signoff.app.option_check import origin_of, unknown_option_problems
from signoff.app.settings import Settings
from signoff.documents.python_files import extend_import_path, make_importable
from signoff.errors import ConfigError, Problem
from signoff.runtime.ports import Observer

ObserverFactory = Callable[..., Observer]
"""`(setup, **options) -> observer`"""


def observer_problems(settings: Settings, root: Path) -> Iterator[Problem]:
    """Yields a problem for each unknown observer and each option that one does not take."""
    for name, each in settings.observe.items():
        if ":" in each.kind:
            make_importable([root])
        key = f"observe.{name}"
        try:
            names = option_names(observer_factory(name, each.kind))
        except ConfigError as error:
            yield Problem(origin_of(settings, f"{key}.kind", key), str(error))
            continue
        if names is not None:
            # The first parameter is the setup.
            yield from unknown_option_problems(settings, key, each.options, names[1:])


def observer_factory(name: str, kind: str) -> ObserverFactory:
    """Returns what builds an observer; raises `ConfigError` if it is unknown."""
    if ":" in kind:
        extend_import_path(kind)
        return plugins.load(kind)  # type: ignore[no-any-return]  # whatever the user names
    # Built-in observers are looked up first, which avoids a search through installed packages.
    import_path = plugins.OBSERVERS.get(kind) or plugins.observer_kinds().get(kind)
    if import_path is None:
        listed = ", ".join([*sorted(plugins.observer_kinds()), "package.module:factory"])
        raise ConfigError(f"observe.{name}: unknown observer {kind!r} (valid: {listed})")
    return plugins.load(import_path)  # type: ignore[no-any-return]  # as the table says
