"""What can only happen to a file: it is missing or damaged, or its tables are rebuilt."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from signoff.contracts.guarded_db.upkeep import Upkeep
from signoff.core.errors import StoreError

SCHEMA = """
CREATE TABLE books (id INTEGER PRIMARY KEY, title TEXT);
CREATE TABLE chapters (id INTEGER PRIMARY KEY, book INTEGER NOT NULL REFERENCES books (id)
    ON DELETE CASCADE);
INSERT INTO books VALUES (1, 'Dune');
INSERT INTO chapters VALUES (1, 1);
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "library.db")) as db:
        db.executescript(SCHEMA)
    return tmp_path / "library.db"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "migrations").mkdir()
    return tmp_path / "migrations"


def rows(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchall()


def test_backups_of_a_file_are_next_to_it(path: Path) -> None:
    """That is where users look first."""
    backup = Upkeep(path).backup()

    assert Path(backup.path).parent == path.parent / "backups"
    assert sorted(entry.suffix for entry in (path.parent / "backups").iterdir()) == [".db", ".json"]


def test_a_lost_database_can_be_restored(path: Path) -> None:
    """That is what backups are for."""
    backup = Upkeep(path).backup()
    for file in path.parent.glob("library.db*"):
        file.unlink()

    restored = Upkeep(path).restore(backup.id)

    assert restored.saved is None
    assert rows(path, "SELECT title FROM books") == [("Dune",)]


def test_a_damaged_database_can_be_restored_and_the_damaged_file_is_kept(path: Path) -> None:
    """The user may still want to recover data from it."""
    backup = Upkeep(path).backup()
    path.write_bytes(b"wrecked" * 1000)

    Upkeep(path).restore(backup.id)

    assert rows(path, "SELECT title FROM books") == [("Dune",)]
    assert path.with_name("library.db.damaged").read_bytes().startswith(b"wrecked")


def test_a_backup_does_not_replace_another_database_of_the_same_path(path: Path) -> None:
    """A path does not identify a database."""
    backup = Upkeep(path).backup()
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.executescript("CREATE TABLE other (a); INSERT INTO other VALUES (1)")

    with pytest.raises(StoreError, match="another database"):
        Upkeep(path).restore(backup.id)

    assert rows(path, "SELECT a FROM other") == [(1,)]


def test_a_table_can_be_rebuilt_without_losing_rows_that_refer_to_it(
    path: Path, files: Path
) -> None:
    """Dropping the old table must not delete all chapters."""
    (files / "001_rebuild.sql").write_text(
        "CREATE TABLE books_new (id INTEGER PRIMARY KEY, title TEXT NOT NULL);\n"
        "INSERT INTO books_new SELECT * FROM books;\n"
        "DROP TABLE books;\n"
        "ALTER TABLE books_new RENAME TO books;\n"
    )

    Upkeep(path, migrations=files).migrate()

    assert rows(path, "SELECT book FROM chapters") == [(1,)]


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_migration_that_breaks_foreign_keys_is_rolled_back(
    path: Path, files: Path, dry_run: bool
) -> None:
    """Foreign keys are not checked while tables are rebuilt, so they are checked at the end."""
    (files / "001_orphans.sql").write_text("DELETE FROM books;")

    with pytest.raises(StoreError, match=r"001_orphans\.sql.*1 rows would refer.*chapters"):
        Upkeep(path, migrations=files).migrate(dry_run=dry_run)

    assert rows(path, "SELECT title FROM books") == [("Dune",)]
