"""The commands of contract workflows: `signoff db`."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from signoff.cli.group import Group
from signoff.cli.options import debug_option, json_option, output

if TYPE_CHECKING:
    from signoff.app.home import Home
    from signoff.guarded_db.backups import Backup
    from signoff.guarded_db.migration_files import MigrationFile
    from signoff.guarded_db.upkeep import DatabaseStatus, Upkeep

F = TypeVar("F", bound=Callable[..., Any])

_EPILOG = """\b
Examples:
  signoff db status
  signoff db migrate --dry-run
  signoff db backup --database book.db
  signoff db backups
  signoff db restore 20260301-120000-000000-ab12

This is the database your workflows work on: `data.url` in the settings, or --database.
signoff keeps its own runs elsewhere, and changes that database by itself.
"""


def database_options(command: F) -> F:
    """Adds what says which database is meant."""
    folder = click.Path(file_okay=False, path_type=Path)
    for option in (
        click.option("--backups", "kept_in", type=folder, metavar="DIR",
                     help="Where backups are kept; else `data.backups`, or beside the file."),
        click.option("--database", metavar="FILE|URL",
                     help="A SQLite file or a postgresql:// address; else `data.url`."),
    ):  # fmt: skip
        command = option(command)
    return command


def migrations_option(command: F) -> F:
    """Adds `--migrations`."""
    return click.option(
        "--migrations", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
        help="The folder of migrations; else `data.migrations`.",
    )(command)  # fmt: skip


@click.group(cls=Group, epilog=_EPILOG)
def db() -> None:
    """Look after your own database: migrations, backups, restore."""


@db.command()
@database_options
@migrations_option
@json_option
@debug_option
def status(
    database: str | None, kept_in: Path | None, migrations: Path | None, as_json: bool
) -> None:
    """List migrations, applied and pending, and the latest backup."""
    out = output(as_json)
    found = _upkeep(database, kept_in, migrations).status()
    if as_json:
        out.json(_status_to_json(found))
        return
    there = "" if found.exists else ", not there yet"
    out.line(f"{found.place} ({found.dialect}{there})")
    rows = [
        (f"{each.version:03}_{each.name}", f"applied {each.applied_at}") for each in found.applied
    ]
    rows += [(each.path.stem, "pending") for each in found.pending]
    if rows:
        out.table(("MIGRATION", "STATE"), rows)
    newest = found.newest_backup
    said = f"{newest.id}, {newest.reason}" if newest else "none yet: signoff db backup"
    out.line(f"latest backup: {said}")


@db.command()
@click.option("--dry-run", is_flag=True, help="Apply everything, look whether it works, undo it.")
@database_options
@migrations_option
@json_option
@debug_option
def migrate(
    dry_run: bool,
    database: str | None,
    kept_in: Path | None,
    migrations: Path | None,
    as_json: bool,
) -> None:
    """Apply pending migrations, each in a transaction, after a backup.

    Migrations are files named 001_what_it_does.sql, 002_..., applied once and in order. One
    that was changed after it was applied is refused.
    """
    out = output(as_json)
    done = _upkeep(database, kept_in, migrations).migrate(dry_run=dry_run)
    if as_json:
        out.json(
            {
                "dry_run": done.dry_run,
                "applied": [_migration_to_json(each) for each in done.applied],
                "backup": asdict(done.backup) if done.backup else None,
            }
        )
        return
    if done.backup is not None:
        out.line(f"backup {done.backup.id}")
    for each in done.applied:
        out.line(f"{'would apply' if dry_run else 'applied'} {each.path.name}")
    if not done.applied:
        out.line("nothing is pending")


@db.command()
@click.option("--reason", default="by hand", metavar="WORDS", help="Why it is taken.")
@database_options
@json_option
@debug_option
def backup(reason: str, database: str | None, kept_in: Path | None, as_json: bool) -> None:
    """Take a backup, while others read and write.

    The oldest ones beyond `data.keep` are removed.
    """
    out = output(as_json)
    taken = _upkeep(database, kept_in).backup(reason)
    if as_json:
        out.json(asdict(taken))
        return
    out.line(f"backup {taken.id}: {taken.path}, {_size(taken.size_bytes)}")


@db.command()
@database_options
@json_option
@debug_option
def backups(database: str | None, kept_in: Path | None, as_json: bool) -> None:
    """List the backups there are, newest first."""
    out = output(as_json)
    found = _upkeep(database, kept_in).backups()
    if as_json:
        out.json([asdict(each) for each in found])
        return
    if not found:
        out.line("there are no backups yet; take one: signoff db backup")
        return
    rows = [(each.id, _moment(each), _size(each.size_bytes), each.reason) for each in found]
    out.table(("BACKUP", "TAKEN (UTC)", "SIZE", "WHY"), rows)


@db.command()
@click.argument("backup_id", metavar="BACKUP")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@database_options
@json_option
@debug_option
def restore(
    backup_id: str, yes: bool, database: str | None, kept_in: Path | None, as_json: bool
) -> None:
    """Bring a backup back, once it is checked.

    What is there now is backed up first. A backup that is damaged, was changed, or is of
    another database is refused, and the database stays as it is.
    """
    out = output(as_json)
    keeper = _upkeep(database, kept_in)
    if not yes:
        _confirm(keeper, backup_id, as_json)
    done = keeper.restore(backup_id)
    if as_json:
        saved = asdict(done.saved) if done.saved else None
        out.json({"restored": asdict(done.backup), "saved": saved})
        return
    out.line(f"restored {done.backup.id} to {done.backup.place}")
    if done.saved is not None:
        out.line(f"what was there is kept as {done.saved.id}")


def _upkeep(database: str | None, kept_in: Path | None, migrations: Path | None = None) -> Upkeep:
    """Returns the upkeep of the database that the command line, or the settings, name."""
    from signoff.app.home import find_home
    from signoff.app.settings import load_settings
    from signoff.guarded_db.settings import DataSection
    from signoff.guarded_db.upkeep import Upkeep

    cwd = Path.cwd()
    home = find_home(cwd, os.environ)
    settings = DataSection(**load_settings(home, os.environ).sections.get("data", {}))
    address = database or settings.url
    if address is None:
        raise click.UsageError(
            "which database? give --database FILE, or set it in .signoff/config.yaml: "
            "data: {url: book.db}"
        )
    root = home.root if home is not None else cwd
    backups = settings.backups and root / Path(settings.backups).expanduser()
    changes = settings.migrations and root / Path(settings.migrations).expanduser()
    return Upkeep(
        _located(address, cwd if database is not None else root),
        migrations=migrations or changes or None,
        backups=kept_in or backups or _default_backups(home, address),
        keep=settings.keep,
    )


def _located(address: str, seen_from: Path) -> str | Path:
    """Returns an address that means the same wherever the program runs."""
    path = address.removeprefix("sqlite:///")
    return address if "://" in path else seen_from / Path(path).expanduser()


def _default_backups(home: Home | None, address: str) -> Path | None:
    """Returns where copies of a server's database go; those of a file are beside it."""
    on_server = address.startswith(("postgres://", "postgresql://"))
    return home.path / "backups" if on_server and home is not None else None


def _confirm(keeper: Upkeep, backup_id: str, as_json: bool) -> None:
    from signoff.cli.terminal import has_keyboard

    if as_json or not has_keyboard():
        raise click.UsageError("this replaces what is in the database; say --yes if you mean it")
    place = keeper.status().place
    click.confirm(f"Replace all of {place} with backup {backup_id}?", abort=True, err=True)


def _status_to_json(found: DatabaseStatus) -> dict[str, Any]:
    return {
        "database": found.place,
        "kind": found.dialect,
        "exists": found.exists,
        "applied": [asdict(each) for each in found.applied],
        "pending": [_migration_to_json(each) for each in found.pending],
        "latest_backup": asdict(found.newest_backup) if found.newest_backup else None,
    }


def _migration_to_json(migration: MigrationFile) -> dict[str, Any]:
    return {
        "version": migration.version,
        "name": migration.name,
        "path": str(migration.path),
        "checksum": migration.checksum,
    }


def _moment(backup: Backup) -> str:
    from datetime import datetime

    from signoff.cli.text import moment

    return moment(datetime.fromisoformat(backup.created_at).timestamp())


def _size(size: int) -> str:
    return f"{size / 1000:.0f} kB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"
