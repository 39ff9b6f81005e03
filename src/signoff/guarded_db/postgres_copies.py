"""Copies a PostgreSQL database to a file with pg_dump, and back with psql."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from signoff.errors import ConfigError, StoreBusy, StoreDamaged, StoreError
from signoff.guarded_db.identity import ensure_id, read_id
from signoff.guarded_db.ports import Connection
from signoff.guarded_db.postgres import PATIENCE_SECONDS, PostgresConnection
from signoff.guarded_db.staging import STEPS, runs_since
from signoff.postgres_driver import driver

MOST_SECONDS = 3600.0
"""A dump or a restore that takes longer is aborted."""

_MAJOR_VERSION = re.compile(r"\(PostgreSQL\)\s+(\d+)")
_COMPLETE = b"PostgreSQL database dump complete"
_SCHEMAS = """
SELECT quote_ident(nspname) FROM pg_namespace
WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema' ORDER BY nspname
"""


class PostgresCopies:
    """Copies of one database on a server."""

    suffix = ".sql"

    def __init__(
        self, url: str, *, patience: float = PATIENCE_SECONDS, tables: Sequence[str] = ()
    ) -> None:
        self.tables: Sequence[str] = tuple(tables)
        driver()  # fails with a helpful message if psycopg is missing
        from psycopg.conninfo import conninfo_to_dict, make_conninfo

        parts = conninfo_to_dict(url)
        self._url = url
        self._patience = patience
        # Passed in the environment: any user of the machine can read a command line.
        self._password = parts.pop("password", None)
        self._target = make_conninfo(**{key: str(value) for key, value in parts.items()})
        with closing(self._connect()) as db:
            self.label = db.label

    def database_id(self) -> str | None:
        """Returns the id of the database; None if it is empty."""
        with closing(self._connect()) as db:
            return read_id(db)

    def copy_out(self, target: Path) -> str:
        """Writes a consistent dump into a new file; returns the id of the database."""
        with closing(self._connect()) as db:
            database = ensure_id(db)
            programs = find_programs(db)
        self._run(
            [
                programs.dump,
                f"--file={target}",
                "--format=plain",
                "--encoding=UTF8",
                f"--lock-wait-timeout={int(self._patience * 1000)}",
                # Some tables are restored into the schema as it is then.
                *(["--data-only", "--strict-names"] if self.tables else []),
                *(f"--table={pattern(table)}" for table in self.tables),
                f"--dbname={self._target}",
            ],
        )
        return database

    def runs_since(self, moment: str) -> tuple[str, ...]:
        """Returns the runs that have changed the database since a time."""
        with closing(self._connect()) as db:
            return runs_since(db, moment)

    def verify(self, source: Path, database: str, tables: Sequence[str] = ()) -> None:
        """Raises if a file is not a complete dump of the database with that id."""
        text = source.read_bytes()
        if _COMPLETE not in text[-400:]:
            raise StoreDamaged(f"{source} is damaged: the dump is not complete")
        # The id is in a table of its own, which a backup of some tables does not contain.
        if not tables and database.encode() not in text:
            raise StoreError(f"{source} is a backup of another database; it is not restored")

    def copy_in(self, source: Path, tables: Sequence[str] = (), since: str = "") -> None:
        """Replaces the content of the database with that of the dump, in one transaction."""
        with closing(self._connect()) as db:
            programs = find_programs(db)
            prepare = _emptied_tables(db, tables, since) if tables else _emptied_database(db)
        self._restore(programs.psql, source, prepare)

    def _restore(self, psql: str, source: Path, prepare: str) -> None:
        self._run(
            [
                psql,
                "--no-psqlrc",
                "--quiet",
                f"--output={os.devnull}",
                "--single-transaction",
                "--set=ON_ERROR_STOP=1",
                f"--dbname={self._target}",
                f"--command={prepare}",
                f"--file={source}",
            ],
        )

    def _connect(self) -> PostgresConnection:
        return PostgresConnection(self._url, patience=self._patience)

    def _run(self, command: Sequence[str]) -> None:
        settings = f"-c lock_timeout={int(self._patience * 1000)} -c client_min_messages=warning"
        environment = {**os.environ, "PGOPTIONS": settings}
        if self._password is not None:
            environment["PGPASSWORD"] = str(self._password)
        try:
            process = subprocess.run(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=MOST_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise StoreError(f"{Path(command[0]).name} could not be run: {error}") from error
        if process.returncode != 0:
            raise self._error(command[0], process.stderr)

    def _error(self, program: str, output: str) -> StoreError:
        lines = output.splitlines()
        errors = [line for line in lines if "rror" in line] or lines[-1:] or ["no output"]
        reason = errors[0].strip()
        if "lock timeout" in output:
            return StoreBusy(f"{self.label} is locked by another session ({reason}); try again")
        return StoreError(f"{Path(program).name} failed: {reason}")


def pattern(table: str) -> str:
    """Returns the name of a table as pg_dump takes it, without wildcards."""
    return ".".join(f'"{part}"' for part in table.replace('"', "").split("."))


def _emptied_database(db: Connection) -> str:
    """Returns the statements that remove everything from a database."""
    # Tables that were added after the dump must go too, or the next migration would fail.
    schemas = [str(row[0]) for row in db.own(_SCHEMAS)]
    return "; ".join(
        [
            *(f"DROP SCHEMA {schema} CASCADE" for schema in schemas),
            "CREATE SCHEMA public",
            "GRANT USAGE ON SCHEMA public TO PUBLIC",
        ]
    )


def _emptied_tables(db: Connection, tables: Sequence[str], since: str) -> str:
    """Returns the statements that empty some tables; fails if others refer to them."""
    names = ", ".join(pattern(table) for table in tables)
    statements = [f"TRUNCATE {names}"]
    steps = db.own_table(STEPS)
    if steps:
        # The runs that did this work must not take it for done.
        statements.append(
            f"DELETE FROM {steps} WHERE substr(applied_at, 1, 19) >= '{since[:19]}'"  # noqa: S608
        )
    return "; ".join(statements)


@dataclass(frozen=True)
class Programs:
    """The paths of the programs that copy a database."""

    dump: str
    psql: str


def find_programs(db: Connection) -> Programs:
    """Returns programs that are not older than the server; older ones refuse to dump it."""
    (version,) = db.own("SHOW server_version_num")[0]
    required = int(version) // 10_000
    rejected = []
    for dump in _candidates(db):
        major = _major_version(dump)
        psql = dump.with_name("psql")
        if major is not None and major >= required and psql.is_file():
            return Programs(str(dump), str(psql))
        rejected.append(f"{dump} is version {major or 'unknown'}")
    found = "; ".join(rejected) or "none was found"
    raise ConfigError(
        f"a backup needs pg_dump and psql {required} or newer on the PATH, like the server: {found}"
    )


def _candidates(db: Connection) -> Iterator[Path]:
    """Yields the pg_dump on the PATH, and the one in the server's own folder."""
    on_path = shutil.which("pg_dump")
    if on_path is not None:
        # Not resolved: it may be a link into a folder that does not contain psql.
        yield Path(on_path)
    try:
        rows = db.own("SELECT setting FROM pg_config WHERE name = 'BINDIR'")
    except StoreError:
        # Only users with special rights may read the server's settings.
        return
    for (folder,) in rows:
        dump = Path(str(folder)) / "pg_dump"
        if dump.is_file():
            yield dump


def _major_version(dump: Path) -> int | None:
    try:
        process = subprocess.run(
            [str(dump), "--version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _MAJOR_VERSION.search(process.stdout)
    return int(match[1]) if match else None
