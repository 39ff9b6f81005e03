"""The files of migrations: `001_name.sql`, `002_name.sql`, numbered without gaps.

Everything that can be wrong with a file before it is applied is found here.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from signoff.errors import ConfigError, NotAllowed
from signoff.guarded_db.lexing import read
from signoff.guarded_db.verdict import OWN_TABLES, Dialect

_FILE = re.compile(r"(\d{3,})_([A-Za-z0-9][\w-]*)\.sql")
_OWN = re.compile(rf"\b{OWN_TABLES}(steps|migrations|database)\b", re.IGNORECASE)

_FIRST_WORD = re.compile(r"[\s;]*(\w+)")

_NOT_INSIDE = frozenset(
    "begin start commit end rollback abort savepoint release attach detach vacuum pragma".split()
)
"""Words that would end the migration's transaction, or work outside of it."""


@dataclass(frozen=True)
class MigrationFile:
    """One file."""

    version: int
    name: str
    path: Path
    sql: str

    @property
    def checksum(self) -> str:
        """The digest of its text; the way lines end does not count."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def read_migrations(folder: Path, dialect: Dialect) -> tuple[MigrationFile, ...]:
    """Reads the files of a folder in order; every mistake in them is reported at once."""
    if not folder.is_dir():
        raise ConfigError(f"there is no folder of migrations at {folder}")
    found, problems = [], []
    for path in sorted(folder.glob("*.sql")):
        name = _FILE.fullmatch(path.name)
        if name is None:
            problems.append(f"{path.name}: name it like 001_what_it_does.sql")
            continue
        try:
            migration = MigrationFile(int(name[1]), name[2], path, path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"{path.name}: cannot be read ({error})")
            continue
        found.append(migration)
        problems += [f"{path.name}: {problem}" for problem in _problems(migration, dialect)]
    problems += _numbering(found)
    if problems:
        raise ConfigError(f"the migrations in {folder} have problems: " + "; ".join(problems))
    return tuple(sorted(found, key=lambda migration: migration.version))


def _numbering(found: Sequence[MigrationFile]) -> Iterator[str]:
    by_version: dict[int, list[str]] = {}
    for migration in found:
        by_version.setdefault(migration.version, []).append(migration.path.name)
    for version, names in by_version.items():
        if len(names) > 1:
            yield f"number {version} is used twice ({', '.join(sorted(names))})"
    for version in range(1, max(by_version, default=0)):
        if version not in by_version:
            yield f"number {version} is missing"
    if 0 in by_version:
        yield "numbers begin with 1"


def _problems(migration: MigrationFile, dialect: Dialect) -> Iterator[str]:
    reading = read(migration.sql, dialect)
    if not reading.bare.replace(";", "").strip():
        yield "there is no statement in it"
    if "\0" in migration.sql:
        yield "holds a NUL character"
    if _OWN.search(migration.sql):
        yield "signoff's own tables are left to signoff"
    if dialect == "sqlite":
        try:
            firsts = [read(text, dialect).bare for text in statements_of(migration.sql)]
        except NotAllowed as error:
            yield str(error)
            return
    else:
        firsts = reading.bare.split(";")
    words = {found[1].lower() for text in firsts if (found := _FIRST_WORD.match(text))}
    for word in sorted(words & _NOT_INSIDE):
        yield f"{word.upper()} has no place in it: each file is one transaction"


def statements_of(sql: str) -> Iterator[str]:
    """Cuts a text where SQLite itself sees statements end; bodies of triggers stay whole."""
    held = ""
    for piece in re.split(r"(?<=;)", sql):
        held += piece
        if sqlite3.complete_statement(held):
            yield held
            held = ""
    if held.strip() and read(held, "sqlite").bare.strip():
        if not sqlite3.complete_statement(held + ";"):
            raise NotAllowed("its last statement is not complete")
        yield held
