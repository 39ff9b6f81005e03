"""Reads the files of migrations: `001_name.sql`, `002_name.sql`, numbered without gaps.

Everything that can be wrong with a file before it is applied is reported here.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from signoff.errors import ConfigError, NotAllowed
from signoff.guarded_db.lexing import lex
from signoff.guarded_db.verdict import OWN_TABLES, Dialect

_FILE = re.compile(r"(\d{3,})_([A-Za-z0-9][\w-]*)\.sql")
_OWN = re.compile(rf"\b{OWN_TABLES}(steps|migrations|database)\b", re.IGNORECASE)

_FIRST_WORD = re.compile(r"[\s;]*(\w+)")

_NOT_INSIDE = frozenset(
    "begin start commit end rollback abort savepoint release attach detach vacuum pragma".split()
)
"""Statements that would end the migration's transaction, or cannot be part of one."""


@dataclass(frozen=True)
class MigrationFile:
    """One migration."""

    version: int
    name: str
    path: Path
    sql: str

    @property
    def checksum(self) -> str:
        """The digest of its text; line endings do not matter."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def read_migrations(folder: Path, dialect: Dialect) -> tuple[MigrationFile, ...]:
    """Returns the migrations of a folder in order; raises `ConfigError` with every problem."""
    if not folder.is_dir():
        raise ConfigError(f"the folder of migrations {folder} does not exist")
    migrations, problems = [], []
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
        migrations.append(migration)
        problems += [f"{path.name}: {problem}" for problem in _problems(migration, dialect)]
    problems += _numbering_problems(migrations)
    if problems:
        raise ConfigError(f"the migrations in {folder} have problems: " + "; ".join(problems))
    return tuple(sorted(migrations, key=lambda migration: migration.version))


def _numbering_problems(migrations: Sequence[MigrationFile]) -> Iterator[str]:
    by_version: dict[int, list[str]] = {}
    for migration in migrations:
        by_version.setdefault(migration.version, []).append(migration.path.name)
    for version, names in by_version.items():
        if len(names) > 1:
            yield f"number {version} is used twice ({', '.join(sorted(names))})"
    for version in range(1, max(by_version, default=0)):
        if version not in by_version:
            yield f"number {version} is missing"
    if 0 in by_version:
        yield "numbers start at 1"


def _problems(migration: MigrationFile, dialect: Dialect) -> Iterator[str]:
    bare = lex(migration.sql, dialect).bare
    if not bare.replace(";", "").strip():
        yield "contains no statement"
    if "\0" in migration.sql:
        yield "contains a NUL character"
    if _OWN.search(migration.sql):
        yield "uses signoff's own tables; leave them to signoff"
    if dialect == "sqlite":
        try:
            statements = [lex(text, dialect).bare for text in statements_of(migration.sql)]
        except NotAllowed as error:
            yield str(error)
            return
    else:
        statements = bare.split(";")
    words = {match[1].lower() for text in statements if (match := _FIRST_WORD.match(text))}
    for word in sorted(words & _NOT_INSIDE):
        yield f"{word.upper()} is not allowed: each file is one transaction"


def statements_of(sql: str) -> Iterator[str]:
    """Splits a text where SQLite itself sees statements end; bodies of triggers stay whole."""
    statement = ""
    for piece in re.split(r"(?<=;)", sql):
        statement += piece
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip() and lex(statement, "sqlite").bare.strip():
        if not sqlite3.complete_statement(statement + ";"):
            raise NotAllowed("the last statement is not complete")
        yield statement
