"""`signoff db` looks after the user's own database."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from signoff.cli import main
from tests.acceptance.conftest import Site
from tests.acceptance.desk import Done

TABLES = "CREATE TABLE chapters (id INTEGER PRIMARY KEY, words INTEGER NOT NULL);\n"
TITLES = (
    "ALTER TABLE chapters ADD COLUMN title TEXT;\nUPDATE chapters SET title = 'x' WHERE id > 0;\n"
)


class Library(Site):
    """A project with a database of its own; commands run in this very process."""

    def db(self, *arguments: str) -> Done:
        out, err = StringIO(), StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main(["db", *arguments])
        return Done(code, out.getvalue(), err.getvalue())

    def told(self, *arguments: str) -> Any:
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
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    """A database with one migration applied and one chapter; the next migration is written."""
    here = Library(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name, value in here.environment.items():
        monkeypatch.setenv(name, value)
    for name in ("SIGNOFF_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    here.write(
        ".signoff/config.yaml", "version: 1\ndata: {url: book.db, migrations: changes, keep: 3}\n"
    )
    here.write("changes/001_tables.sql", TABLES)
    assert here.db("migrate").code == 0
    with here.open() as db:
        db.execute("INSERT INTO chapters VALUES (1, 10)")
    here.write("changes/002_titles.sql", TITLES)
    return here


def test_status_tells_what_was_applied_and_what_is_pending(library: Library) -> None:
    """Before a release somebody asks exactly that."""
    status = library.told("status")

    assert [each["name"] for each in status["applied"]] == ["tables"]
    assert [each["name"] for each in status["pending"]] == ["titles"]
    assert status["exists"] is True
    assert "002_titles  pending" in library.db("status").out


def test_migrations_are_rehearsed_then_applied_after_a_backup(library: Library) -> None:
    """A dry run changes nothing; a real one can be taken back."""
    rehearsed = library.told("migrate", "--dry-run")
    before = library.columns
    done = library.told("migrate")

    assert [each["name"] for each in rehearsed["applied"]] == ["titles"]
    assert before == ["id", "words"]
    assert library.columns == ["id", "words", "title"]
    assert done["backup"]["reason"] == "before a migration"
    assert library.db("migrate").out == "nothing is pending\n"


def test_a_migration_that_was_edited_is_refused(library: Library) -> None:
    """Two machines would have two schemas under one number."""
    library.write("changes/001_tables.sql", TABLES + "-- and more\n")

    refused = [library.db("migrate"), library.db("status")]

    assert [done.code for done in refused] == [2, 2]
    assert "001_tables.sql was changed after it was applied" in refused[0].err


def test_a_migration_that_fails_half_way_is_rolled_back(library: Library) -> None:
    """Half a migration can neither be repeated nor taken back."""
    library.write("changes/002_titles.sql", TITLES + "UPDATE nowhere SET x = 1 WHERE id = 1;\n")

    failed = library.db("migrate")

    assert failed.code == 1
    assert "002_titles.sql failed and was rolled back" in failed.err
    assert library.columns == ["id", "words"]
    assert len(library.told("backups")) == 1


def test_a_backup_is_restored_and_what_was_there_is_kept(library: Library) -> None:
    """Whoever restores the wrong one can restore once more."""
    taken = library.told("backup", "--reason", "before the edit")
    with library.open() as db:
        db.execute("UPDATE chapters SET words = 99")

    done = library.told("restore", taken["id"], "--yes")
    restored = library.words
    library.db("restore", done["saved"]["id"], "--yes")

    assert restored == [10]
    assert library.words == [99]
    assert "before the edit" in library.db("backups").out


def test_a_restore_asks_first_or_wants_to_be_told(library: Library) -> None:
    """A script that restores by accident destroys a day's work."""
    taken = library.told("backup")

    refused = library.db("restore", taken["id"])

    assert refused.code == 2
    assert "--yes" in refused.err
    assert len(library.told("backups")) == 1


def test_only_so_many_backups_are_kept(library: Library) -> None:
    """Disks fill up."""
    taken = [library.told("backup")["id"] for _ in range(5)]

    assert [each["id"] for each in library.told("backups")] == taken[:1:-1]


def test_a_backup_that_was_changed_is_not_restored(library: Library) -> None:
    """What is there now is better than something nobody can vouch for."""
    taken = library.told("backup")
    with Path(taken["path"]).open("r+b") as file:
        file.seek(100)
        file.write(b"\0" * 50)

    refused = library.db("restore", taken["id"], "--yes")

    assert refused.code == 1
    assert "damaged or was changed" in refused.err
    assert library.words == [10]


def test_a_backup_of_another_database_is_not_restored(library: Library) -> None:
    """Its tables may even look alike."""
    with library.open("other.db") as db:
        db.execute("CREATE TABLE chapters (id INTEGER PRIMARY KEY, words INTEGER)")
    foreign = library.told("backup", "--database", "other.db")

    refused = library.db("restore", foreign["id"], "--yes")

    assert refused.code == 1
    assert "belongs to another database" in refused.err
    assert library.words == [10]


def test_a_file_that_is_no_database_is_named(library: Library) -> None:
    """The path was mistyped, or the disk is going."""
    library.write("notes.db", "these are notes, no database\n" * 100)

    refused = [library.db(name, "--database", "notes.db") for name in ("status", "backup")]

    assert [done.code for done in refused] == [1, 1]
    assert all("notes.db" in done.err for done in refused)


def test_readers_go_on_while_a_backup_is_taken(library: Library) -> None:
    """A backup before every run must not stop whoever uses the database."""
    with library.open() as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT words FROM chapters").fetchall()
        taken = library.db("backup")
        seen = reader.execute("SELECT words FROM chapters").fetchall()

    assert taken.code == 0, taken.err
    assert seen == [(10,)]


def test_without_a_name_or_a_setting_nothing_is_guessed(library: Library) -> None:
    """The wrong database would be migrated."""
    library.write(".signoff/config.yaml", "version: 1\n")

    unnamed = library.db("status")
    unknown = library.db("migrate", "--database", "book.db")
    bare = library.told("status", "--database", "book.db")

    assert (unnamed.code, unknown.code) == (2, 2)
    assert "data: {url: book.db}" in unnamed.err
    assert "--migrations DIR" in unknown.err
    assert [each["name"] for each in bare["applied"]] == ["tables"]


def test_paths_in_the_settings_are_seen_from_the_projects_root(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same command in a sub-folder must not make a second database."""
    (library.folder / "notes").mkdir()
    monkeypatch.chdir(library.folder / "notes")

    status = library.told("status")

    assert Path(status["database"]) == library.folder / "book.db"
    assert [each["name"] for each in status["pending"]] == ["titles"]


def test_a_database_that_is_not_there_is_made_by_its_migrations(library: Library) -> None:
    """A new colleague has nothing but the files."""
    before = library.told("status", "--database", "new.db")
    library.db("migrate", "--database", "new.db")

    after = library.told("status", "--database", "new.db")

    assert (before["exists"], len(before["pending"])) == (False, 2)
    assert (after["exists"], after["pending"]) == (True, [])


def test_a_password_in_an_address_is_not_shown(library: Library) -> None:
    """Settings are pasted into tickets."""
    out = StringIO()
    library.write(
        ".signoff/config.yaml", 'version: 1\ndata: {url: "postgresql://ann:hunter2@db/book"}\n'
    )

    with redirect_stdout(out):
        main(["config", "show", "--json"])

    assert json.loads(out.getvalue())["data.url"]["value"] == "postgresql://***@db/book"
