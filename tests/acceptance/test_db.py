"""`signoff db` migrates and backs up the user's own database."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from signoff.surfaces.cli import main
from tests.acceptance.cli_project import CliProject, CommandResult
from tests.acceptance.forked_program import ForkedProgram

TABLES = "CREATE TABLE chapters (id INTEGER PRIMARY KEY, words INTEGER NOT NULL);\n"
TITLES = (
    "ALTER TABLE chapters ADD COLUMN title TEXT;\nUPDATE chapters SET title = 'x' WHERE id > 0;\n"
)


class DatabaseProject(CliProject):
    """A project with a database."""

    def db(self, *arguments: str) -> CommandResult:
        return self.call("db", *arguments)

    def json_of(self, *arguments: str) -> Any:
        done = self.db(*arguments, "--json")
        assert done.code == 0, done.err
        return done.json

    @contextmanager
    def open(self, name: str = "book.db") -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.folder / name, isolation_level=None)) as db:
            yield db

    @property
    def columns(self) -> list[str]:
        with self.open() as db:
            return [row[1] for row in db.execute("PRAGMA table_info(chapters)")]

    @property
    def words(self) -> list[int]:
        with self.open() as db:
            return [words for (words,) in db.execute("SELECT words FROM chapters ORDER BY id")]


@pytest.fixture
def project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_server: ForkedProgram
) -> DatabaseProject:
    """A database with one applied migration, one pending migration and one chapter."""
    project = DatabaseProject(tmp_path, command_server)
    project.enter(monkeypatch)
    project.write(
        ".signoff/config.yaml", "version: 1\ndata: {url: book.db, migrations: changes, keep: 3}\n"
    )
    project.write("changes/001_tables.sql", TABLES)
    assert project.db("migrate").code == 0
    with project.open() as db:
        db.execute("INSERT INTO chapters VALUES (1, 10)")
    project.write("changes/002_titles.sql", TITLES)
    return project


def test_migrations_are_rehearsed_then_applied_after_a_backup(project: DatabaseProject) -> None:
    """A dry run changes nothing; a real one can be undone with the backup."""
    rehearsed = project.json_of("migrate", "--dry-run")
    before = project.columns
    done = project.json_of("migrate")

    assert [each["name"] for each in rehearsed["applied"]] == ["titles"]
    assert before == ["id", "words"]
    assert project.columns == ["id", "words", "title"]
    assert done["backup"]["reason"] == "before a migration"
    assert project.db("migrate").out == "nothing is pending\n"


def test_a_migration_that_was_edited_is_refused(project: DatabaseProject) -> None:
    """Two machines would have two schemas under one number."""
    project.write("changes/001_tables.sql", TABLES + "-- and more\n")

    refused = [project.db("migrate"), project.db("status")]

    assert [done.code for done in refused] == [2, 2]
    assert "001_tables.sql was changed after it was applied" in refused[0].err


def test_a_migration_that_fails_halfway_is_rolled_back(project: DatabaseProject) -> None:
    """A half-applied migration can neither be repeated nor undone."""
    project.write("changes/002_titles.sql", TITLES + "UPDATE nowhere SET x = 1 WHERE id = 1;\n")

    failed = project.db("migrate")

    assert failed.code == 1
    assert "002_titles.sql failed and was rolled back" in failed.err
    assert project.columns == ["id", "words"]
    assert len(project.json_of("backups")) == 1


def test_a_restore_keeps_the_replaced_database(project: DatabaseProject) -> None:
    """A user who restored the wrong backup can undo that."""
    taken = project.json_of("backup", "--reason", "before the edit")
    with project.open() as db:
        db.execute("UPDATE chapters SET words = 99")

    done = project.json_of("restore", taken["id"], "--yes")
    restored = project.words
    project.db("restore", done["saved"]["id"], "--yes")

    assert restored == [10]
    assert project.words == [99]
    assert "before the edit" in project.db("backups").out


def test_a_backup_that_was_changed_is_not_restored(project: DatabaseProject) -> None:
    """A damaged backup must not replace a working database."""
    taken = project.json_of("backup")
    with Path(taken["path"]).open("r+b") as file:
        file.seek(100)
        file.write(b"\0" * 50)

    refused = project.db("restore", taken["id"], "--yes")

    assert refused.code == 1
    assert "damaged or was changed" in refused.err
    assert project.words == [10]


def test_a_backup_of_another_database_is_not_restored(project: DatabaseProject) -> None:
    """It may have the same tables."""
    with project.open("other.db") as db:
        db.execute("CREATE TABLE chapters (id INTEGER PRIMARY KEY, words INTEGER)")
    foreign = project.json_of("backup", "--database", "other.db")

    refused = project.db("restore", foreign["id"], "--yes")

    assert refused.code == 1
    assert "belongs to another database" in refused.err
    assert project.words == [10]


def test_the_database_has_to_be_named(project: DatabaseProject) -> None:
    """The wrong database would be migrated."""
    project.write(".signoff/config.yaml", "version: 1\n")

    unnamed = project.db("status")
    unknown = project.db("migrate", "--database", "book.db")
    bare = project.json_of("status", "--database", "book.db")

    assert (unnamed.code, unknown.code) == (2, 2)
    assert "data: {url: book.db}" in unnamed.err
    assert "--migrations DIR" in unknown.err
    assert [each["name"] for each in bare["applied"]] == ["tables"]


def test_migrate_creates_a_missing_database(project: DatabaseProject) -> None:
    """A new colleague only has the migration files."""
    before = project.json_of("status", "--database", "new.db")
    project.db("migrate", "--database", "new.db")

    after = project.json_of("status", "--database", "new.db")

    assert (before["exists"], len(before["pending"])) == (False, 2)
    assert (after["exists"], after["pending"]) == (True, [])


def test_a_password_in_an_address_is_not_shown(project: DatabaseProject) -> None:
    """Settings are pasted into tickets."""
    out = StringIO()
    project.write(
        ".signoff/config.yaml", 'version: 1\ndata: {url: "postgresql://ann:hunter2@db/book"}\n'
    )

    with redirect_stdout(out):
        main(["config", "show", "--json"])

    assert json.loads(out.getvalue())["data.url"]["value"] == "postgresql://***@db/book"


def test_a_restore_needs_a_confirmation(project: DatabaseProject) -> None:
    """A script that restores by accident destroys a day's work."""
    taken = project.json_of("backup")

    refused = project.db("restore", taken["id"])

    assert refused.code == 2
    assert "--yes" in refused.err
    assert len(project.json_of("backups")) == 1
