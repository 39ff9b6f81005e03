import json
import os
import stat
import threading
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from signoff.contracts.guarded_db.staging import Marker
from signoff.contracts.guarded_db.upkeep import Backup, Origin, Upkeep
from signoff.core.errors import (
    ConfigError,
    StoreBusy,
    StoreDamaged,
    UnknownName,
    WriteFailed,
)
from signoff.testing import FrozenClock
from tests.contract.library import Library, sqlite_library
from tests.patience import PATIENCE_SECONDS

BEFORE = ["Dune", "Emma"]


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return sqlite_library(tmp_path)


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "001_shelves.sql").write_text(
        "-- where books stand; on shelves\n"
        "CREATE TABLE shelves (id INT PRIMARY KEY, name TEXT);\n"
        "INSERT INTO shelves VALUES (1, 'top; left');\n"
    )
    (folder / "002_authors.sql").write_text("ALTER TABLE books ADD COLUMN author TEXT")
    return folder


@pytest.fixture
def upkeep(library: Library, files: Path, clock: FrozenClock) -> Upkeep:
    return Upkeep(
        library.address,
        migrations=files,
        backups=library.folder / "backups",
        now=clock.now,
        keep=3,
        patience=0.3,
    )


def write(library: Library, sql: str) -> None:
    with closing(library.connect()) as db:
        db.execute(sql)


def file_of(backup: Backup) -> Path:
    return Path(backup.path)


# Backups


def test_backups_are_listed_newest_first_and_the_oldest_are_removed(
    upkeep: Upkeep, clock: FrozenClock
) -> None:
    """Disks are limited, and users mostly want the latest one."""
    taken = []
    for number in range(5):
        taken.append(upkeep.backup(f"number {number}", origin=Origin.RUN))
        clock.advance(60)

    assert [backup.reason for backup in upkeep.backups()] == ["number 4", "number 3", "number 2"]
    assert not file_of(taken[0]).exists()
    assert upkeep.status().newest_backup == taken[-1]


def test_each_origin_keeps_its_own_backups_and_those_by_hand_stay(
    upkeep: Upkeep, clock: FrozenClock
) -> None:
    """A night of runs must not push out the backup that someone took on purpose."""
    for origin in (Origin.HAND, Origin.MIGRATION, Origin.RUN):
        for number in range(5):
            upkeep.backup(f"{origin} {number}", origin=origin)
            clock.advance(60)

    found = [backup.reason for backup in reversed(upkeep.backups())]

    assert found == [
        *(f"hand {number}" for number in range(5)),
        *(f"migration {number}" for number in (2, 3, 4)),
        *(f"run {number}" for number in (2, 3, 4)),
    ]


def test_a_restore_names_the_runs_whose_work_it_undoes(
    upkeep: Upkeep, library: Library, clock: FrozenClock
) -> None:
    """Their journals say that the work is done."""
    do_work(library, "early", "1999-01-01T00:00:00")
    backup = upkeep.backup()
    later = datetime.fromtimestamp(clock.now() + 60, UTC).isoformat()
    do_work(library, "late", later)
    do_work(library, "latest", later)

    announced = upkeep.affected_runs(backup.id)
    restored = upkeep.restore(backup.id)

    assert announced == restored.runs == ("late", "latest")
    assert library.rows("SELECT run FROM signoff_steps") == [("early/key",)]


def do_work(library: Library, run: str, moment: str) -> None:
    with library.open() as db:
        db.staged().apply([], marker=Marker(f"{run}/key", "add", 1))
    write(library, f"UPDATE signoff_steps SET applied_at = '{moment}' WHERE run = '{run}/key'")


def test_the_backup_that_is_being_restored_is_not_removed(
    upkeep: Upkeep, library: Library, clock: FrozenClock
) -> None:
    """The backup of the current content must not displace the wanted one."""
    taken = []
    for _ in range(3):
        taken.append(upkeep.backup(origin=Origin.RESTORE))
        clock.advance(60)
    write(library, "UPDATE books SET title = 'ruined'")

    upkeep.restore(taken[0].id)

    assert library.titles() == BEFORE
    assert file_of(taken[0]).exists()


def test_a_backup_is_for_its_owner_only(upkeep: Upkeep) -> None:
    """It contains all of the data."""
    backup = upkeep.backup()

    assert stat.S_IMODE(file_of(backup).stat().st_mode) == 0o600
    assert stat.S_IMODE(file_of(backup).parent.stat().st_mode) & 0o077 == 0


def test_a_damaged_backup_with_a_forged_record_is_still_refused(
    upkeep: Upkeep, library: Library
) -> None:
    """A digest shows that the file was not changed, not that it was ever valid."""
    import hashlib

    backup = upkeep.backup()
    cut = file_of(backup).read_bytes()[:-600]
    file_of(backup).write_bytes(cut)
    record = file_of(backup).with_name(f"{backup.id}.json")
    forged = {**json.loads(record.read_text()), "sha256": hashlib.sha256(cut).hexdigest()}
    record.write_text(json.dumps(forged))

    with pytest.raises(StoreDamaged, match=r"damaged|no sound backup"):
        upkeep.restore(backup.id)

    assert library.titles() == BEFORE


def test_a_foreign_file_under_a_known_name_is_refused(upkeep: Upkeep, library: Library) -> None:
    """A file without our record is not a backup."""
    backup = upkeep.backup()
    file_of(backup).with_name("mine" + file_of(backup).suffix).write_bytes(b"x")
    file_of(backup).with_name("odd.json").write_text('{"id": "odd"}')
    file_of(backup).with_name("torn.json").write_text("{")

    with pytest.raises(UnknownName, match=f"valid names: {backup.id}"):
        upkeep.restore("mine")
    with pytest.raises(UnknownName):
        upkeep.restore("../" + backup.id)

    assert upkeep.backups() == (backup,)


def test_a_folder_of_backups_can_be_moved(upkeep: Upkeep, library: Library) -> None:
    """Projects are moved, and records contain paths."""
    backup = upkeep.backup()
    (library.folder / "backups").rename(library.folder / "moved")
    write(library, "UPDATE books SET title = 'ruined'")

    Upkeep(library.address, backups=library.folder / "moved").restore(backup.id)

    assert library.titles() == BEFORE


def test_a_restore_into_a_database_in_use_fails_with_a_message(
    upkeep: Upkeep, library: Library
) -> None:
    """It would wait forever, or replace the data during another transaction."""
    backup = upkeep.backup()

    with closing(library.connect()) as other:
        other.execute("BEGIN")
        other.execute("UPDATE books SET title = 'mine' WHERE id = 1")
        with pytest.raises(StoreBusy, match="locked"):
            upkeep.restore(backup.id)
        other.execute("COMMIT")

    assert library.titles() == ["mine", "Emma"]


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_a_folder_that_cannot_be_written_is_reported(library: Library, tmp_path: Path) -> None:
    """A run must not start without its backup."""
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(WriteFailed, match="cannot write"):
        Upkeep(library.address, backups=tmp_path / "file" / "backups").backup()


# Migrations


def test_a_removed_last_file_is_refused_by_name(upkeep: Upkeep, files: Path) -> None:
    """An older program would work on a newer schema."""
    upkeep.migrate()
    (files / "002_authors.sql").unlink()

    with pytest.raises(ConfigError, match=r"002_authors\.sql was applied and is missing"):
        upkeep.migrate()


def test_two_processes_that_migrate_at_once_apply_each_file_once(
    library: Library, files: Path
) -> None:
    """A deployment starts several at the same moment."""
    counts: list[int] = []
    together = threading.Barrier(3)

    def one() -> None:
        upkeep = Upkeep(library.address, migrations=files, backups=library.folder / "b")
        together.wait(PATIENCE_SECONDS)
        counts.append(len(upkeep.migrate().applied))

    threads = [threading.Thread(target=one) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (len(counts), sum(counts)) == (3, 2)
