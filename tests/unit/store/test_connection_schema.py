import resource
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from signoff.core.errors import StoreTooNew
from signoff.store.connection import LATEST, Migration, migrate, shipped_migrations
from signoff.store.sqlite import SqliteStore
from tests.patience import PATIENCE_SECONDS
from tests.store_suite.journal_writer import start_run

SECOND = Migration(
    LATEST + 1,
    "labels",
    """
-- Labels; a comment with a semicolon must not end the statement.
CREATE TABLE labels (run INTEGER NOT NULL, label TEXT NOT NULL);
CREATE TRIGGER no_blank BEFORE INSERT ON labels WHEN new.label = ''
BEGIN
    SELECT raise(ABORT, 'blank');
END;
INSERT INTO labels SELECT id, 'old' FROM runs;
""",
)
BROKEN = Migration(
    LATEST + 2, "broken", "CREATE TABLE more (x TEXT);\nINSERT INTO nowhere VALUES (1);\n"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database of this version with a run in it."""
    path = tmp_path / "signoff.db"
    with closing(SqliteStore(path)) as store:
        start_run(store)
    return path


@pytest.fixture
def db(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        yield db


def version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def backups(path: Path) -> list[Path]:
    return sorted(path.parent.glob("*.backup"))


def test_the_newest_migration_is_the_one_the_program_opens_without_looking() -> None:
    """A migration that is not counted would never be applied."""
    migrations = shipped_migrations()

    assert [m.version for m in migrations] == list(range(1, LATEST + 1))


def test_a_database_of_this_version_is_opened_without_a_backup(path: Path) -> None:
    """Otherwise every command would leave a copy behind."""
    with closing(SqliteStore(path)):
        pass

    assert backups(path) == []


def test_a_newer_database_is_rejected_and_left_unchanged(path: Path) -> None:
    """In a newer version, its content may have another meaning."""
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {LATEST + 1}")
    before = path.read_bytes()

    with pytest.raises(StoreTooNew, match="upgrade signoff") as refused:
        SqliteStore(path)

    assert "\n" not in str(refused.value)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["signoff.db"]


def test_an_older_database_is_migrated_after_a_backup(db: sqlite3.Connection, path: Path) -> None:
    """If the new version turns out bad, the old file is still there."""
    migrate(db, path, [*shipped_migrations(), SECOND])

    assert version(db) == LATEST + 1
    assert db.execute("SELECT label FROM labels").fetchall() == [("old",)]
    (backup,) = backups(path)
    # It contains everything that the database contains.
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    with closing(sqlite3.connect(backup)) as old:
        assert version(old) == LATEST
        assert old.execute("SELECT name FROM runs").fetchall() == [("run",)]


@contextmanager
def small_disk(largest: int) -> Iterator[None]:
    """A disk that stores at most the first bytes of any file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_database_without_a_backup_is_not_migrated(db: sqlite3.Connection, path: Path) -> None:
    """A full disk must not leave an empty file that looks like a backup."""
    migrations = [*shipped_migrations(), SECOND]

    for _ in range(2):
        with small_disk(path.stat().st_size // 2), pytest.raises(sqlite3.OperationalError):
            migrate(db, path, migrations)

    assert version(db) == LATEST
    assert not list(path.parent.glob("*.backup*"))


def test_a_complete_backup_is_written_once_there_is_space(
    db: sqlite3.Connection, path: Path
) -> None:
    """What an earlier, failed try left behind is not a backup."""
    with small_disk(path.stat().st_size // 2), pytest.raises(sqlite3.OperationalError):
        migrate(db, path, [*shipped_migrations(), SECOND])

    migrate(db, path, [*shipped_migrations(), SECOND])

    assert version(db) == LATEST + 1
    (backup,) = path.parent.glob("*.backup*")
    with closing(sqlite3.connect(backup)) as old:
        assert old.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert old.execute("SELECT name FROM runs").fetchall() == [("run",)]


def test_a_migration_that_fails_leaves_the_version_before_it(
    db: sqlite3.Connection, path: Path
) -> None:
    """No version understands half a migration."""
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        migrate(db, path, [*shipped_migrations(), SECOND, BROKEN])

    tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master")}
    assert version(db) == LATEST
    assert not {"labels", "more"} & tables
    assert not db.in_transaction
    with closing(sqlite3.connect(backups(path)[0])) as old:
        assert version(old) == LATEST


MIGRATE = """
import sqlite3, sys
from pathlib import Path
from signoff.store.connection import LATEST, Migration, migrate, shipped_migrations
path = Path(sys.argv[1])
slow = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 300000)"
second = Migration(LATEST + 1, "slow", f"CREATE TABLE slow AS {slow} SELECT x FROM n;")
third = Migration(LATEST + 2, "once", "CREATE TABLE once (x TEXT);")
db = sqlite3.connect(path, isolation_level=None, timeout=60)
print("ready", flush=True)
sys.stdin.readline()
migrate(db, path, [*shipped_migrations(), second, third])
"""


def test_several_processes_that_migrate_at_once_do_it_once(path: Path) -> None:
    """After an upgrade, several terminals may migrate at the same time."""
    argv = [sys.executable, "-c", MIGRATE, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    crowd = [subprocess.Popen(argv, text=True, **pipes) for _ in range(3)]  # type: ignore[call-overload]  # the pipes are alike
    for each in crowd:
        assert each.stdout.readline() == "ready\n"

    for each in crowd:
        each.stdin.write("go\n")
        each.stdin.flush()
    ends = [each.communicate(timeout=PATIENCE_SECONDS) for each in crowd]

    assert [each.returncode for each in crowd] == [0, 0, 0], ends
    with closing(sqlite3.connect(path)) as db:
        applied = db.execute("SELECT version FROM schema_migrations ORDER BY version").fetchall()
        assert applied == [(n,) for n in range(1, LATEST + 3)]
    (backup,) = backups(path)
    assert backup.name.startswith(f"{path.name}.v{LATEST}-")
    with closing(sqlite3.connect(backup)) as old:
        assert version(old) == LATEST
        assert old.execute("PRAGMA integrity_check").fetchone() == ("ok",)
