"""The extension points of signoff, all in one file.

Built-in parts and those of other packages are registered alike: in a table of names and import
paths (`module:attribute`), which are loaded on first use. Another package adds to a table with an
entry point of the same group in its own pyproject.toml. The group `signoff.profiles` belongs to
the notation of that name, which finds profiles itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from signoff.agents.kinds import BUILT_IN
from signoff.core.errors import ConfigError
from signoff.documents.entry_points import entry_points
from signoff.documents.python_files import extend_import_path
from signoff.notation import Notation, NotationOption

if TYPE_CHECKING:
    from signoff.runtime.ports import Agent
    from signoff.runtime.store_port import StoreKind
    from signoff.views.exports.run_record import Export

N = TypeVar("N", Notation, "Export")

AgentKind = Callable[..., "Agent"]
"""Builds an agent from the options under its name in the settings."""

NOTATIONS: Mapping[str, str] = {
    "flows": "signoff.review.flow.flow_notation:NOTATION",
    "contracts": "signoff.contracts.contract_notation:NOTATION",
    "profiles": "signoff.profiles.profile_notation:NOTATION",
    "skills": "signoff.skills.skill_notation:NOTATION",
    "pair": "signoff.pair.pair_notation:NOTATION",
}
"""The built-in notations, by name."""

DEFAULT_NOTATION = "flows"
"""Reads the YAML files that no notation recognizes."""

AGENT_KINDS: Mapping[str, str] = BUILT_IN
"""Agents that can be named under `agents:` in the settings, by kind."""

EXPORTS: Mapping[str, str] = {
    "github": "signoff.views.exports.reviews:GITHUB",
    "html": "signoff.views.pages.report:EXPORT",
    "json": "signoff.views.exports.run_json:EXPORT",
    "markdown": "signoff.views.exports.reviews:MARKDOWN",
    "otel": "signoff.views.exports.otel:EXPORT",
    "sarif": "signoff.views.exports.reviews:SARIF",
}
"""The built-in formats of `signoff export`, by name."""

STORES: Mapping[str, str] = {
    "postgres": "signoff.store.postgres.store:KIND",
    "postgresql": "signoff.store.postgres.store:KIND",
}
"""The stores that `database:` in the settings can name, by the scheme of their URL. A file is not
among them: it needs no URL, and is opened without looking for plug-ins."""

OBSERVERS: Mapping[str, str] = {
    "metrics": "signoff.views.metrics_server:MetricsServer",
    "otel": "signoff.views.otel:otel_observer",
}
"""Observers that can be named under `observe:` in the settings, by name."""


DISPATCHERS: Mapping[str, str] = {
    "temporal": "signoff.app.workers.temporal:TemporalDispatcher",
}
"""What can bring runs to workers, by the scheme of `dispatch:` in the settings."""


GROUPS: Mapping[str, Mapping[str, str]] = {
    "agents": AGENT_KINDS,
    "dispatchers": DISPATCHERS,
    "exports": EXPORTS,
    "notations": NOTATIONS,
    "observers": OBSERVERS,
    "stores": STORES,
}
"""What is built in, by the group of entry points that adds to it."""


def paths(group: str) -> Mapping[str, str]:
    """Returns the import path of everything in a group, by name."""
    return {**entry_points(group), **GROUPS[group]}


def path_of(group: str, name: str) -> str | None:
    """Returns the import path of one name; installed packages are searched if it is not built in.

    Built-in names go first, so that a package adds to the program and replaces nothing of it.
    """
    return GROUPS[group].get(name) or entry_points(group).get(name)


def factory(group: str, setting: str, kind: str) -> Callable[..., Any]:
    """Returns what builds an agent or an observer: that of its group, or the user's own.

    `setting` names it; raises `ConfigError` for an unknown kind.
    """
    if ":" in kind:
        # It may be a module of the folder in which the program was started.
        extend_import_path(kind)
        return load(kind)  # type: ignore[no-any-return]  # whatever the user names
    import_path = path_of(group, kind)
    if import_path is None:
        listed = ", ".join(sorted(paths(group)))
        raise ConfigError(
            f"{setting}: unknown kind {kind!r} (kinds: {listed}; or package.module:factory)"
        )
    return load(import_path)  # type: ignore[no-any-return]  # as the table says


def notation(name: str) -> Notation | None:
    """Returns a notation by name; installed packages are searched for those not built in."""
    import_path = path_of("notations", name) if name not in ("", "python") else None
    return _named(Notation, name, import_path) if import_path is not None else None


def notations() -> Iterator[Notation]:
    """Yields every notation, built-in ones first; a broken one hides no other."""
    for name, import_path in NOTATIONS.items():
        yield _named(Notation, name, import_path)
    for name, import_path in entry_points("notations").items():
        try:
            if name not in NOTATIONS:
                yield _named(Notation, name, import_path)
        except ConfigError as error:
            logging.getLogger("signoff").warning("notation %r is not available: %s", name, error)


def export(name: str) -> Export | None:
    """Returns an export format by name."""
    from signoff.views.exports.run_record import Export

    import_path = path_of("exports", name)
    return _named(Export, name, import_path) if import_path is not None else None


def store_kind(scheme: str) -> StoreKind | None:
    """Returns a kind of store by the scheme of its URLs; None if no package provides it."""
    from signoff.runtime.store_port import StoreKind

    import_path = path_of("stores", scheme)
    if import_path is None:
        return None
    value = load(import_path)
    if not isinstance(value, StoreKind):
        raise ConfigError(f"{import_path!r} is not a StoreKind")
    return value


def options_of(command: str) -> list[NotationOption]:
    """Returns the options that notations add to a command."""
    owners: dict[str, Notation] = {}
    found = []
    for each in notations():
        for option in each.options:
            if command not in option.commands:
                continue
            owner = owners.setdefault(option.flag, each)
            # Whichever came first would win silently, and the other notation would never get its
            # value.
            if owner is not each:
                raise ConfigError(
                    f"the notations {owner.name!r} and {each.name!r} both define the option "
                    f"{option.flag}; uninstall one of them"
                )
            found.append(option)
    return found


def load(import_path: str) -> Any:
    """Imports `package.module:attribute`."""
    module_name, _, attribute = import_path.partition(":")
    try:
        return getattr(import_module(module_name), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"cannot load {import_path!r}: {error}") from error


def _named(kind: type[N], name: str, import_path: str) -> N:
    """Loads a notation or an export, which has to have the name that it is registered under."""
    value = load(import_path)
    if not isinstance(value, kind) or value.name != name:
        raise ConfigError(f"{import_path!r} is not of type {kind.__name__} with the name {name!r}")
    return value
