import errno
import os
import stat
import time
from pathlib import Path

import pytest

from signoff.core.errors import WriteFailed
from signoff.store.run_files import LARGEST_READ, LEFTOVER_SECONDS, SCRATCH, Disk, read_regular_file


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_files_and_new_folders_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    """Prompts and replies may be secret; other users of the machine must not read them."""
    path = tmp_path / "runs" / "one" / "deep" / "a.txt"

    Disk(tmp_path / "runs").put(path, b"text")

    assert mode_of(path) == 0o600
    folders = [path.parent, path.parent.parent, tmp_path / "runs", tmp_path / "runs" / SCRATCH]
    assert [mode_of(folder) for folder in folders] == [0o700] * 4


def test_a_file_is_replaced_atomically_without_leftovers(tmp_path: Path) -> None:
    """A reader must see the old text or the new one, and no litter."""
    disk = Disk(tmp_path)
    disk.put(tmp_path / "a.txt", b"a long first text")

    disk.put(tmp_path / "a.txt", b"short")

    assert (tmp_path / "a.txt").read_bytes() == b"short"
    assert list((tmp_path / SCRATCH).iterdir()) == []


def test_a_link_with_the_name_of_a_file_is_replaced_and_not_followed(tmp_path: Path) -> None:
    """A link planted as state.json would otherwise overwrite a file elsewhere."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "state.json").symlink_to(precious)

    Disk(tmp_path).put(tmp_path / "state.json", b"new")

    assert precious.read_text() == "mine"
    assert (tmp_path / "state.json").read_bytes() == b"new"


def test_a_log_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    """A log that grows in place would write into the target of the link."""
    precious = tmp_path / "precious"
    precious.write_bytes(b"mine")
    (tmp_path / "log").symlink_to(precious)

    with pytest.raises(WriteFailed):
        Disk(tmp_path).append(tmp_path / "log", b"more\n")

    assert precious.read_bytes() == b"mine"


def test_latest_is_a_relative_link(tmp_path: Path) -> None:
    """A project that is moved must not point to its old folder."""
    disk = Disk(tmp_path)
    disk.point_link(tmp_path / "latest", "one")

    disk.point_link(tmp_path / "latest", "two")

    assert (tmp_path / "latest").readlink() == Path("two")


def test_without_links_latest_is_a_file_with_the_name(tmp_path: Path) -> None:
    """Windows refuses symlinks to most users, and the run must continue."""

    class Linkless(Disk):
        def _link(self, path: Path, target: str) -> None:
            raise OSError(errno.EPERM, "not permitted")

    Linkless(tmp_path).point_link(tmp_path / "latest", "one")

    assert not (tmp_path / "latest").is_symlink()
    assert (tmp_path / "latest").read_text() == "one\n"
    assert list((tmp_path / SCRATCH).iterdir()) == []


def test_an_unwritable_path_is_reported_in_one_line(tmp_path: Path) -> None:
    """The operator has to know the path and what to check."""
    (tmp_path / "runs").write_text("a file where the folder should be")

    with pytest.raises(WriteFailed, match=r"cannot write .*runs.*check that its folder"):
        Disk(tmp_path / "runs").put(tmp_path / "runs" / "one" / "a.txt", b"text")


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    """A full disk must not be filled further by every retry."""
    (tmp_path / "taken").mkdir()
    disk = Disk(tmp_path)

    with pytest.raises(WriteFailed):
        disk.put(tmp_path / "taken", b"a folder is in the way")

    assert list((tmp_path / SCRATCH).iterdir()) == []


def test_old_scratch_files_are_removed_and_new_ones_are_not(tmp_path: Path) -> None:
    """A killed process leaves a file; another one may be writing at this moment."""
    scratch = tmp_path / SCRATCH
    scratch.mkdir()
    old, fresh = scratch / "old", scratch / "fresh"
    old.touch()
    fresh.touch()
    then = time.time() - LEFTOVER_SECONDS - 60
    os.utime(old, (then, then))

    Disk(tmp_path).put(tmp_path / "a.txt", b"text")

    assert list(scratch.iterdir()) == [fresh]


def test_the_directory_may_be_deleted_between_two_writes(tmp_path: Path) -> None:
    """Deleting runs/ must not stop an active process."""
    disk, root = Disk(tmp_path / "runs"), tmp_path / "runs"
    disk.put(root / "a.txt", b"text")
    (root / "a.txt").unlink()
    (root / SCRATCH).rmdir()
    root.rmdir()

    disk.put(root / "b.txt", b"text")

    assert (root / "b.txt").read_bytes() == b"text"


def test_only_regular_files_of_limited_size_are_read(tmp_path: Path) -> None:
    """A pipe named answers.json would hang the run; a huge file would fill the memory."""
    (tmp_path / "plain").write_bytes(b"text")
    (tmp_path / "link").symlink_to("plain")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(LARGEST_READ + 1)

    names = ["plain", "link", "folder", "pipe", "huge", "missing"]
    read = {name: read_regular_file(tmp_path / name) for name in names}

    assert read == {**dict.fromkeys(names), "plain": b"text"}
