"""Finds pg_dump and psql that fit the server: on the PATH, or beside the server itself."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from signoff.errors import ConfigError, StoreError
from signoff.guarded_db.ports import Connection

_MAJOR = re.compile(r"\(PostgreSQL\)\s+(\d+)")


@dataclass(frozen=True)
class Programs:
    """The programs that copy a database."""

    dump: str
    psql: str
    variables: Mapping[str, str] = field(default_factory=dict)
    """Added to their environment."""


def programs_for(db: Connection) -> Programs:
    """Returns programs that are not older than the server; older ones refuse to dump it."""
    (version,) = db.own("SHOW server_version_num")[0]
    wanted = int(version) // 10_000
    seen = []
    for dump in _candidates(db):
        major = _major(dump)
        psql = dump.with_name("psql")
        if major is not None and major >= wanted and psql.is_file():
            return Programs(str(dump), str(psql))
        seen.append(f"{dump} is version {major or 'unknown'}")
    found = "; ".join(seen) or "none was found"
    raise ConfigError(
        f"a backup needs pg_dump and psql {wanted} or newer on the PATH, like the server: {found}"
    )


def _candidates(db: Connection) -> Iterator[Path]:
    on_path = shutil.which("pg_dump")
    if on_path is not None:
        # Distributions put a link there; psql may lie elsewhere once it is followed.
        yield Path(on_path)
    try:
        rows = db.own("SELECT setting FROM pg_config WHERE name = 'BINDIR'")
    except StoreError:
        # Only those who may read the server's settings are told.
        return
    beside = [Path(str(setting)) / "pg_dump" for (setting,) in rows]
    yield from (dump for dump in beside if dump.is_file())


def _major(dump: Path) -> int | None:
    try:
        said = subprocess.run(
            [str(dump), "--version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _MAJOR.search(said.stdout)
    return int(found[1]) if found else None
