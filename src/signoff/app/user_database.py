"""Finds the user's own database and whoever looks after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from signoff.app.home import Home, find_home
from signoff.app.settings import load_settings
from signoff.errors import UsageError

if TYPE_CHECKING:
    from signoff.contracts.db.upkeep import Upkeep


@dataclass(frozen=True)
class DatabaseOptions:
    """What the command line says; None where the settings hold."""

    database: str | None = None
    migrations: Path | None = None
    backups: Path | None = None


def upkeep_of(cwd: Path, environment: Mapping[str, str], said: DatabaseOptions) -> Upkeep:
    """Returns whoever looks after the database the command line, or the settings, name."""
    from signoff.contracts.db.upkeep import Upkeep

    home = find_home(cwd, environment)
    settings = load_settings(home, environment).data
    address = said.database or settings.url
    if address is None:
        raise UsageError(
            "which database? give --database FILE, or set it in .signoff/config.yaml: "
            "data: {url: book.db}"
        )
    seen_from = cwd if said.database is not None or home is None else home.root
    return Upkeep(
        _located(address, seen_from),
        migrations=said.migrations or _folder(home, settings.migrations),
        backups=said.backups or _folder(home, settings.backups) or _default_backups(home, address),
        keep=settings.keep,
    )


def _located(address: str, seen_from: Path) -> str | Path:
    """Returns an address that means the same wherever the program stands."""
    path = address.removeprefix("sqlite:///")
    return address if "://" in path else seen_from / Path(path).expanduser()


def _folder(home: Home | None, name: str | None) -> Path | None:
    if name is None:
        return None
    folder = Path(name).expanduser()
    return home.root / folder if home is not None else folder


def _default_backups(home: Home | None, address: str) -> Path | None:
    """Returns where copies of a server's database go; those of a file lie beside it."""
    on_server = address.startswith(("postgres://", "postgresql://"))
    return home.path / "backups" if on_server and home is not None else None
