"""Copies a PostgreSQL database out with pg_dump, and in with psql in one transaction."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from signoff.errors import StoreBusy, StoreDamaged, StoreError
from signoff.guarded_db.identity import identify, identity
from signoff.guarded_db.postgres import PATIENCE_SECONDS, PostgresConnection, driver
from signoff.guarded_db.postgres_programs import Programs, programs_for

MOST_SECONDS = 3600.0
"""A dump or a restore that takes longer is ended."""

_COMPLETE = b"PostgreSQL database dump complete"
_SCHEMAS = """
SELECT quote_ident(nspname) FROM pg_namespace
WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema' ORDER BY nspname
"""


class PostgresCopies:
    """Copies of one database on a server."""

    suffix = ".sql"

    def __init__(self, url: str, *, patience: float = PATIENCE_SECONDS) -> None:
        from psycopg.conninfo import conninfo_to_dict, make_conninfo

        parts = conninfo_to_dict(url)
        self._url = url
        self._patience = patience
        # Not on the command line, where everybody on the machine can read it.
        self._password = parts.pop("password", None)
        self._target = make_conninfo(**{key: str(value) for key, value in parts.items()})
        with closing(self._connect()) as db:
            self.place = db.place

    def name(self) -> str | None:
        """Returns the database's own name; None when there is nothing in it."""
        with closing(self._connect()) as db:
            return identity(db)

    def copy_out(self, target: Path) -> str:
        """Writes a consistent dump into a file; nobody else is held up."""
        with closing(self._connect()) as db:
            name = identify(db)
            programs = programs_for(db)
        self._run(
            programs,
            [
                programs.dump,
                f"--file={target}",
                "--format=plain",
                "--encoding=UTF8",
                f"--lock-wait-timeout={int(self._patience * 1000)}",
                f"--dbname={self._target}",
            ],
        )
        return name

    def verify(self, source: Path, database: str) -> None:
        """Raises when a file is not a whole dump of the database of that name."""
        text = source.read_bytes()
        if _COMPLETE not in text[-400:]:
            raise StoreDamaged(f"{source} is damaged: the dump has no end")
        if database.encode() not in text:
            raise StoreError(f"{source} is a backup of another database; it is not restored")

    def copy_in(self, source: Path) -> None:
        """Makes the database what the dump says, in one transaction."""
        with closing(self._connect()) as db:
            schemas = [str(row[0]) for row in db.own(_SCHEMAS)]
            programs = programs_for(db)
        # What was added since the dump has to go too, or the next migration would trip over it.
        emptied = "; ".join(
            [
                *(f"DROP SCHEMA {schema} CASCADE" for schema in schemas),
                "CREATE SCHEMA public",
                "GRANT USAGE ON SCHEMA public TO PUBLIC",
            ]
        )
        self._run(
            programs,
            [
                programs.psql,
                "--no-psqlrc",
                "--quiet",
                f"--output={os.devnull}",
                "--single-transaction",
                "--set=ON_ERROR_STOP=1",
                f"--dbname={self._target}",
                f"--command={emptied}",
                f"--file={source}",
            ],
        )

    def _connect(self) -> PostgresConnection:
        return PostgresConnection(self._url, patience=self._patience)

    def _run(self, programs: Programs, command: Sequence[str]) -> None:
        try:
            ended = subprocess.run(
                command,
                env=self._environment(programs),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=MOST_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise StoreError(f"{Path(command[0]).name} could not be run: {error}") from error
        if ended.returncode != 0:
            raise self._explained(command[0], ended.stderr)

    def _environment(self, programs: Programs) -> Mapping[str, str]:
        waits = f"-c lock_timeout={int(self._patience * 1000)} -c client_min_messages=warning"
        given = {**os.environ, "PGOPTIONS": waits, **programs.variables}
        return given if self._password is None else {**given, "PGPASSWORD": str(self._password)}

    def _explained(self, program: str, said: str) -> StoreError:
        lines = [line for line in said.splitlines() if "rror" in line] or said.splitlines()[-1:]
        reason = lines[0].strip() if lines else "it said nothing"
        if "lock timeout" in said:
            return StoreBusy(f"{self.place} is locked by somebody else ({reason}); try again")
        return StoreError(f"{Path(program).name} failed: {reason}")


def postgres_copies(url: str, *, patience: float = PATIENCE_SECONDS) -> PostgresCopies:
    """Returns the copies of a database, after seeing that psycopg is installed."""
    driver()
    return PostgresCopies(url, patience=patience)
