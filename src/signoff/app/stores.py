"""Opens the store of a project's runs: a file by default, or what a URL in the settings names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from signoff.app.home import Home, find_home
from signoff.app.settings import FILE, SCHEME, Settings, database_file, load_settings
from signoff.app.trust import check_setting, trust_database
from signoff.errors import ConfigError, UsageError
from signoff.runtime.store_port import Store, StoreKind


def open_store(home: Home, settings: Settings) -> Store:
    """Opens a project's database; creates it if it does not exist."""
    # Connecting to a server sends it something, and a file could be any file of the user.
    check_setting(home, settings, "database")
    file = database_file(settings.database, home.path)
    is_new = file is not None and not file.exists()
    store = open_database(settings.database, home.path)
    if is_new:
        trust_database(home, settings)
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
    from signoff import plugins

    scheme = SCHEME.match(address)
    name = scheme[1].lower() if scheme is not None else FILE
    if name == FILE:
        raise _no_setup()
    kind = plugins.store_kind(name)
    if kind is None:
        valid = ", ".join(f"{each}://" for each in sorted({*plugins.store_paths(), FILE}))
        raise ConfigError(f"unsupported kind of database {name!r}; valid: a path, {valid}")
    return kind


def _no_setup() -> UsageError:
    return UsageError("this database is set up when it is opened; there is nothing to do")
