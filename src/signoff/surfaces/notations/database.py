"""The command `signoff db`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from signoff.surfaces.cli import options as cli
from signoff.surfaces.cli.output import Output, has_keyboard, moment

if TYPE_CHECKING:
    from signoff.contracts.guarded_db.upkeep import Backup, MigrationFile, Upkeep

FOLDER = click.Path(file_okay=False, path_type=Path)

_EPILOG = """\b
Examples:
  signoff db status
  signoff db migrate --dry-run
  signoff db backup --database book.db
  signoff db setup --print --role worker
  signoff db backups
  signoff db restore 20260301-120000-000000-ab12

This is the SQLite file your workflows use: `data.url` in the settings, or --database.
A PostgreSQL database has tools of its own: back it up with pg_dump.
signoff stores its runs in a database of its own, which it migrates by itself.
"""


def upkeep_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options that select the database, and passes its upkeep to the command."""

    @click.option("--database", metavar="FILE", help="A SQLite file; default: `data.url`.")
    @click.option(
        "--backups",
        "backups_folder",
        metavar="DIR",
        type=FOLDER,
        help="Folder of the backups; default: `data.backups`, else next to the file.",
    )
    @wraps(command)
    def run(
        database: str | None,
        backups_folder: Path | None,
        migrations: Path | None = None,
        **options: Any,
    ) -> None:
        command(_upkeep(database, backups_folder, migrations), **options)

    return run  # fmt: skip


migrations_option = click.option("--migrations", type=FOLDER, metavar="DIR",
                                 help="Folder of the migrations; default: `data.migrations`.",
)  # fmt: skip


@click.group(cls=cli.Group, epilog=_EPILOG)
def db() -> None:
    """Maintain your own SQLite database: migrations, backups, restore."""


@cli.command(group=db)
@migrations_option
@upkeep_options
def status(upkeep: Upkeep, out: Output) -> None:
    """List migrations, applied and pending, and the latest backup."""
    report = upkeep.status()
    newest = report.newest_backup
    if out.as_json:
        values = {
            "database": report.label,
            "exists": report.exists,
            "applied": [asdict(each) for each in report.applied],
            "pending": [_migration_to_json(each) for each in report.pending],
            "latest_backup": asdict(newest) if newest else None,
        }
        out.json(values)
        return
    out.line(f"{report.label}{'' if report.exists else ' (does not exist yet)'}")
    rows = [
        (f"{each.version:03}_{each.name}", f"applied {each.applied_at}") for each in report.applied
    ]
    rows += [(each.path.stem, "pending") for each in report.pending]
    if rows:
        out.table(("MIGRATION", "STATE"), rows)
    latest = f"{newest.id}, {newest.reason}" if newest else "none; run: signoff db backup"
    out.line(f"latest backup: {latest}")


@cli.command(group=db)
@click.option(
    "--dry-run", is_flag=True, help="Apply everything, check that it works, then roll back."
)
@migrations_option
@upkeep_options
def migrate(upkeep: Upkeep, dry_run: bool, out: Output) -> None:
    """Back up the database, then apply pending migrations.

    Migrations are files named 001_what_it_does.sql, 002_..., applied once and in order, each in
    a transaction. A file that was changed after it was applied is refused.
    """
    report = upkeep.migrate(dry_run=dry_run)
    document = {
        "dry_run": report.dry_run,
        "applied": [_migration_to_json(each) for each in report.applied],
        "backup": asdict(report.backup) if report.backup else None,
    }
    verb = "would apply" if dry_run else "applied"
    lines = [f"backup {report.backup.id}"] if report.backup is not None else []
    lines += [f"{verb} {each.path.name}" for each in report.applied] or ["nothing is pending"]
    out.show(document, *lines)


@cli.command(group=db)
@click.option("--reason", default="by hand", metavar="TEXT", help="The reason, which is recorded.")
@upkeep_options
def backup(upkeep: Upkeep, reason: str, out: Output) -> None:
    """Take a backup; the database can be used meanwhile.

    A backup that you take stays until you delete it. Of those that runs, migrations and restores
    take, the newest `data.keep` of each are kept.
    """
    new = upkeep.backup(reason)
    out.show(asdict(new), f"backup {new.id}: {new.path}, {_size(new.size_bytes)}")


@cli.command(group=db)
@upkeep_options
def backups(upkeep: Upkeep, out: Output) -> None:
    """List backups, newest first."""
    listed = upkeep.backups()
    rows = [(each.id, _moment(each), _size(each.size_bytes), each.reason) for each in listed]
    headings = ("BACKUP", "TAKEN (UTC)", "SIZE", "WHY")
    none = "no backups yet; run: signoff db backup"
    out.listing([*map(asdict, listed)], headings, rows, none)


@cli.command(group=db)
@click.argument("backup_id", metavar="BACKUP")
@click.option("-y", "--yes", is_flag=True, help="Don't ask for confirmation.")
@upkeep_options
def restore(upkeep: Upkeep, backup_id: str, yes: bool, out: Output) -> None:
    """Check a backup and restore it.

    The current database is backed up first. A backup that is damaged, was changed, or belongs
    to another database is refused, and the database stays as it is. The runs whose work is
    undone are named; they stop at their next step.
    """
    if not yes:
        _confirm(upkeep, backup_id, out)
    report = upkeep.restore(backup_id)
    saved, runs = report.saved, list(report.runs)
    document = {
        "restored": asdict(report.backup),
        "saved": asdict(saved) if saved else None,
        "runs": runs,
    }
    lines = [f"restored {report.backup.id} to {report.backup.place}"]
    lines += [f"undone: work of {', '.join(runs)}"] if runs else []
    lines += [f"the previous content is backup {saved.id}"] if saved is not None else []
    out.show(document, *lines)


@cli.command(group=db)
@click.option("--print", "print_sql", is_flag=True, help="Print the SQL; nothing is executed.")
@click.option(
    "--role", default="signoff_worker", show_default=True, help="The role that runs workflows."
)
@click.option("--schema", default="public", show_default=True, help="The schema of your tables.")
@click.option(
    "--table", "tables", multiple=True, metavar="TABLE", help="A table to grant; default: all."
)
def setup(print_sql: bool, role: str, schema: str, tables: tuple[str, ...], out: Output) -> None:
    """Show how the owner of a PostgreSQL database sets it up.

    The SQL creates signoff's own tables in a schema of their own, and grants a role the right to
    read and change rows, and nothing else. The owner of the database runs it, for example with:
    signoff db setup --print --role worker | psql DATABASE
    """
    if not print_sql:
        raise click.UsageError("signoff does not run this itself; pass --print to get the SQL")
    sql = setup_sql(role, tables, schema)
    out.show({"sql": sql}, sql.rstrip("\n"))


def setup_sql(role: str, tables: Sequence[str] = (), schema: str = "public") -> str:
    """Returns the statements for a role that may change rows of these tables, or of all.

    Signoff's own table gets a schema of its own, and the role of the workflows gets rights on rows
    only. Nothing here is executed by signoff.
    """
    from signoff.contracts.guarded_db.staging import STEPS, STEPS_TABLE
    from signoff.contracts.guarded_db.verdict import OWN_SCHEMA, quoted

    steps = f"{OWN_SCHEMA}.{STEPS}"
    user, home = quoted(role), quoted(schema)
    rows = "SELECT, INSERT, UPDATE, DELETE"
    names = ", ".join(f"{home}.{quoted(table)}" for table in tables)
    target = names or f"ALL TABLES IN SCHEMA {home}"
    lines = [
        "BEGIN;",
        "",
        "-- signoff's own records: which steps are done",
        f"CREATE SCHEMA IF NOT EXISTS {OWN_SCHEMA};",
        f"{STEPS_TABLE.format(table=steps).strip()};",
        "",
        f"GRANT USAGE ON SCHEMA {OWN_SCHEMA} TO {user};",
        f"GRANT SELECT, INSERT ON {steps} TO {user};",
        "",
        "-- the tables of the workflows: rows only, no changes of the schema",
        f"GRANT USAGE ON SCHEMA {home} TO {user};",
        f"GRANT {rows} ON {target} TO {user};",
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {home} TO {user};",
        "",
        "COMMIT;",
    ]
    return "\n".join(lines) + "\n"


def _upkeep(database: str | None, backups_folder: Path | None, migrations: Path | None) -> Upkeep:
    """Returns the upkeep of the database that the command line or the settings name."""
    from signoff.app.settings.home import find_home
    from signoff.app.settings.settings import load_settings
    from signoff.app.settings.trust import check_trust
    from signoff.contracts.guarded_db.settings import DataSection
    from signoff.contracts.guarded_db.upkeep import Upkeep

    cwd = Path.cwd()
    home = find_home(cwd, os.environ)
    loaded = load_settings(home, os.environ)
    if home is not None:
        check_trust(home, loaded)
    settings = DataSection(**loaded.sections.get("data", {}))
    address = database or settings.url
    if address is None:
        raise click.UsageError(
            "no database is set; pass --database FILE, or put `data: {url: book.db}` "
            "into .signoff/config.yaml"
        )
    root = home.root if home is not None else cwd
    default_backups = settings.backups and root / Path(settings.backups).expanduser()
    default_migrations = settings.migrations and root / Path(settings.migrations).expanduser()
    return Upkeep(
        _absolute(address, cwd if database is not None else root),
        migrations=migrations or default_migrations or None,
        backups=backups_folder or default_backups or None,
        keep=settings.keep,
    )


def _absolute(address: str, folder: Path) -> str | Path:
    """Returns an address that does not depend on the current folder."""
    path = address.removeprefix("sqlite:///")
    return address if "://" in path else folder / Path(path).expanduser()


def _confirm(upkeep: Upkeep, backup_id: str, out: Output) -> None:
    if out.as_json or not has_keyboard():
        raise click.UsageError("this replaces the whole database; pass --yes to confirm")
    database = upkeep.status().label
    runs = upkeep.affected_runs(backup_id)
    if runs:
        click.echo(f"This undoes work of {', '.join(runs)}.", err=True)
    click.confirm(f"Replace all of {database} with backup {backup_id}?", abort=True, err=True)


def _migration_to_json(migration: MigrationFile) -> dict[str, Any]:
    return {
        "version": migration.version,
        "name": migration.name,
        "path": str(migration.path),
        "checksum": migration.checksum,
    }


def _moment(backup: Backup) -> str:
    return moment(datetime.fromisoformat(backup.created_at).timestamp())


def _size(size: int) -> str:
    return f"{size / 1000:.0f} kB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"
