"""Tests of reading files from untrusted paths, and of creating private files."""

import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from signoff.core.errors import Problem, WriteFailed
from signoff.documents.files import read_text
from signoff.documents.regular_files import (
    NotRegular,
    create_private,
    make_private_folders,
    read_regular,
    replace_private,
    translate_write_errors,
)


@pytest.fixture(params=["pipe", "socket", "device"])
def special(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """Provides a path that is not a regular file, and its kind."""
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as server:
        match request.param:
            case "pipe":
                os.mkfifo(path)
            case "socket":
                server.bind(str(path))
            case _:
                path = Path("/dev/zero")
        yield path, request.param


@pytest.fixture(params=[0o000, 0o077, 0o277])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.parametrize("follow", [True, False])
def test_a_special_file_is_refused_by_its_kind(special: tuple[Path, str], follow: bool) -> None:
    """Reading a pipe would block forever, and reading a device may never end."""
    path, kind = special

    with pytest.raises(NotRegular, match=f"is a {kind}"):
        read_regular(path, 10, follow=follow)


def test_a_folder_is_refused_and_its_handle_closed(tmp_path: Path) -> None:
    """A process that checks many paths would run out of handles."""
    lowest = os.dup(0)
    os.close(lowest)

    with pytest.raises(IsADirectoryError, match="is a folder, not a file"):
        read_regular(tmp_path, 10)

    again = os.dup(0)
    os.close(again)
    assert again == lowest


def test_validating_a_pipe_does_not_hang(tmp_path: Path) -> None:
    """`signoff validate` of a folder must return, whatever the folder contains."""
    os.mkfifo(tmp_path / "flow.yaml")
    problems: list[Problem] = []

    assert read_text(tmp_path / "flow.yaml", problems, name="flow.yaml") is None
    assert problems == [Problem("flow.yaml", "is a pipe, not a regular file")]


def test_a_link_is_read_only_where_links_may_be_followed(tmp_path: Path) -> None:
    """Users link their own files, but an agent's link could lead anywhere."""
    (tmp_path / "file").write_text("text")
    (tmp_path / "link").symlink_to("file")

    assert read_regular(tmp_path / "link", None, follow=True) == b"text"
    with pytest.raises(NotRegular, match="is a link"):
        read_regular(tmp_path / "link", None)


def test_a_file_that_is_too_large_is_not_read_whole(tmp_path: Path) -> None:
    """A file of gigabytes must not be loaded into memory just to be refused."""
    (tmp_path / "file").write_text("x" * 100)

    assert len(read_regular(tmp_path / "file", 10)) == 11


# The folder of the test is made first: with such a umask its owner could not write into it.
@pytest.mark.usefixtures("tmp_path", "umask")
def test_files_and_folders_are_private_whatever_the_umask(tmp_path: Path) -> None:
    """They contain prompts and replies, and a server may run with any umask."""
    folder = tmp_path / "a" / "b"

    make_private_folders(folder)
    os.close(create_private(folder / "file"))

    assert [oct(p.stat().st_mode & 0o777) for p in (folder.parent, folder)] == ["0o700"] * 2
    assert oct((folder / "file").stat().st_mode & 0o777) == "0o600"


def test_a_file_is_replaced_as_a_whole_and_for_its_owner_only(tmp_path: Path) -> None:
    """A run's prompts are in it, and another program may be reading the old one."""
    path, link = tmp_path / "run.json", tmp_path / "link"
    path.write_text("old")
    link.symlink_to(path)

    replace_private(link, iter(["n", "ew: \ud83d"]))

    assert path.read_text() == "new: ?"
    assert path.stat().st_mode & 0o777 == 0o600
    assert link.is_symlink()


def test_a_file_that_cannot_be_completed_stays_as_it_was(tmp_path: Path) -> None:
    """Half a document would be taken for a whole one."""
    path = tmp_path / "run.json"
    path.write_text("old")

    def parts() -> Iterator[str]:
        yield "half"
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        replace_private(path, parts())

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_is_reported_as_full(tmp_path: Path) -> None:
    """`Errno 28` does not say what to do."""
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with (
        pytest.raises(WriteFailed, match="the disk is full; free some space"),
        translate_write_errors(tmp_path),
    ):
        raise full
