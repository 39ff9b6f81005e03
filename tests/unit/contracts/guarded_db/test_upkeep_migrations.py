from pathlib import Path

import pytest

from signoff.contracts.guarded_db.upkeep import read_migrations, statements_of
from signoff.core.errors import ConfigError


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name.removeprefix('m')}.sql").write_text(text)
    return folder


def test_files_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    """A table must be created before it is altered."""
    write(tmp_path, m002_b="SELECT 2", m001_a="SELECT 1", m0003_c="SELECT 3")
    (tmp_path / "notes.txt").write_text("not a migration")

    found = read_migrations(tmp_path)

    assert [(migration.version, migration.name) for migration in found] == [
        (1, "a"),
        (2, "b"),
        (3, "c"),
    ]


def test_every_mistake_is_reported_at_once(tmp_path: Path) -> None:
    """All mistakes can be fixed at once."""
    write(tmp_path, m001_a="SELECT 1", m001_b="SELECT 1", m004_c="  -- nothing\n", mlast="SELECT 1")
    (tmp_path / "005_latin.sql").write_bytes(b"SELECT '\xff'")

    with pytest.raises(ConfigError) as refused:
        read_migrations(tmp_path)

    for mistake in (
        "last.sql: name it like 001_what_it_does.sql",
        "number 1 is used twice (001_a.sql, 001_b.sql)",
        "number 2 is missing",
        "number 3 is missing",
        "004_c.sql: contains no statement",
        "005_latin.sql: cannot be read",
    ):
        assert mistake in str(refused.value)


@pytest.mark.parametrize(
    "sql",
    [
        "BEGIN; CREATE TABLE a (b int); COMMIT;",
        "CREATE TABLE a (b int); /* now */ COMMIT; CREATE TABLE c (d int);",
        "CREATE TABLE a (b int);\nrollback;",
        "SAVEPOINT x",
        "VACUUM;",
        "-- quietly\nPRAGMA writable_schema = 1;",
        "ATTACH 'x' AS y;",
        "DROP TABLE signoff_steps;",
        'DELETE FROM "signoff_migrations";',
    ],
)
def test_statements_that_end_the_transaction_or_change_our_tables_are_refused(
    tmp_path: Path, sql: str
) -> None:
    """A migration that commits by itself cannot be rolled back."""
    write(tmp_path, m001_a=sql)

    with pytest.raises(ConfigError, match=r"001_a\.sql: "):
        read_migrations(tmp_path)


def test_an_incomplete_statement_is_refused(tmp_path: Path) -> None:
    """A file that was not saved completely must not be applied in part."""
    write(
        tmp_path,
        m001_a="CREATE TABLE a (b int); CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1;",
    )

    with pytest.raises(ConfigError, match="not complete"):
        read_migrations(tmp_path)


def test_statements_end_where_sqlite_sees_them_end() -> None:
    """Triggers, texts and comments may contain semicolons."""
    first = "CREATE TABLE a (b TEXT DEFAULT ';'); -- one; more"
    second = "\nCREATE TRIGGER t AFTER INSERT ON a BEGIN UPDATE a SET b = ';'; SELECT 1; END;"
    third = "\n/* ; */ DROP TABLE a"

    pieces = list(statements_of(first + second + third))

    assert [piece.count("CREATE") + piece.count("DROP") for piece in pieces] == [1, 1, 1]
    assert "".join(pieces) == first + second + third


def test_line_endings_do_not_count_as_a_change(tmp_path: Path) -> None:
    """A checkout on another system must not be refused."""
    (tmp_path / "001_a.sql").write_bytes(b"SELECT 1;\nSELECT 2;\n")
    (unix,) = read_migrations(tmp_path)
    (tmp_path / "001_a.sql").write_bytes(b"SELECT 1;\r\nSELECT 2;\r\n")
    (windows,) = read_migrations(tmp_path)

    assert unix.checksum == windows.checksum
