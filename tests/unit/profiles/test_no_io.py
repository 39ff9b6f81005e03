import asyncio
import importlib
import importlib.metadata
import logging
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from signoff.profiles.no_io import call_without_io, templates_allowed
from signoff.profiles.templates import render_template
from tests.tables import table

ATTEMPTS: dict[str, Callable[[Path], Any]] = {
    "open to read": lambda folder: (folder / "input.txt").read_text(),
    "open to write": lambda folder: (folder / "new.txt").write_text("x"),
    "open source to write": lambda folder: (folder / "module.py").write_text("x"),
    "open source to read": lambda folder: (folder / "input.py").read_text(),
    "os.open": lambda folder: os.open(folder / "new.txt", os.O_CREAT | os.O_WRONLY),
    "list": lambda folder: list(folder.iterdir()),
    "walk": lambda folder: list(os.walk(folder, onerror=_raise)),
    "glob": lambda folder: list(os.scandir(folder)),
    "mkdir": lambda folder: (folder / "new").mkdir(),
    "remove": lambda folder: (folder / "input.txt").unlink(),
    "rename": lambda folder: (folder / "input.txt").rename(folder / "new.txt"),
    "replace": lambda folder: (folder / "input.txt").replace(folder / "new.txt"),
    "chmod": lambda folder: (folder / "input.txt").chmod(0o600),
    "touch": lambda folder: os.utime(folder / "input.txt"),
    "link": lambda folder: (folder / "new").symlink_to(folder),
    "truncate": lambda folder: os.truncate(folder / "input.txt", 0),
    "copy": lambda folder: shutil.copyfile(folder / "input.txt", folder / "new.txt"),
    "rmtree": shutil.rmtree,
    "temporary file": lambda folder: tempfile.mkstemp(dir=folder),
    "database": lambda folder: sqlite3.connect(folder / "new.db"),
    "program": lambda _folder: subprocess.run([sys.executable, "-c", ""], check=False),
    "shell": lambda _folder: os.system("true"),
    "connection": lambda _folder: socket.create_connection(("127.0.0.1", 9), timeout=1),
    "datagram": lambda _folder: _send_datagram(),
    "name lookup": lambda _folder: socket.getaddrinfo("localhost", 80),
    "terminal": lambda _folder: input(),
    "logging to a new file": lambda folder: logging.FileHandler(folder / "new.log"),
}


def _write_in_thread(folder: Path) -> None:
    thread = threading.Thread(target=(folder / "new.txt").write_text, args=("x",))
    thread.start()
    thread.join()


if sys.version_info >= (3, 12):
    # Older versions do not report new threads, and a thread has a context of its own.
    ATTEMPTS["thread"] = _write_in_thread


def _raise(error: OSError) -> None:
    raise error


def _send_datagram() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.sendto(b"x", ("127.0.0.1", 9))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return with_inputs(tmp_path)


def with_inputs(folder: Path) -> Path:
    (folder / "input.txt").write_text("input")
    (folder / "input.py").write_text("VALUE = 1")
    return folder


@table("attempt", ATTEMPTS)
def test_io_of_a_profile_is_refused(tmp_path: Path, attempt: Callable[[Path], object]) -> None:
    """A profile that reads or writes by itself would not give the same result on a resume."""
    folder = with_inputs(tmp_path)
    before = sorted(path.name for path in folder.iterdir())

    with pytest.raises(PermissionError, match="profiles do no I/O"):
        call_without_io(attempt, folder)

    assert sorted(path.name for path in folder.iterdir()) == before
    assert (folder / "input.txt").read_text() == "input"


def test_the_result_is_returned_and_io_is_possible_again(folder: Path) -> None:
    """The rest of the program is not affected, not even after an error."""
    assert call_without_io(lambda first, second: first + second, 1, 2) == 3
    with pytest.raises(ZeroDivisionError):
        call_without_io(lambda: 1 / 0)

    assert (folder / "input.txt").read_text() == "input"


def test_a_profile_may_import_modules(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Imports read code, list folders and may run I/O of the module itself."""
    package = folder / "lazy_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "first.py").write_text("from pathlib import Path\nDATA = Path(__file__).read_text()")
    (package / "second.py").write_text("VALUE = 2")
    monkeypatch.syspath_prepend(str(folder))

    found = call_without_io(importlib.import_module, "lazy_package.first")

    assert found.DATA.startswith("from pathlib")
    # A folder whose listing was refused would be remembered as empty.
    assert importlib.import_module("lazy_package.second").VALUE == 2


def test_a_call_during_an_import_is_no_import(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script may run a session while it is imported."""
    (folder / "running_script.py").write_text(
        "from signoff.profiles.no_io import call_without_io\n"
        "try:\n"
        "    call_without_io(open, __file__)\n"
        "except PermissionError as error:\n"
        "    REFUSED = str(error)\n"
    )
    monkeypatch.syspath_prepend(str(folder))

    found = importlib.import_module("running_script")

    assert "profiles do no I/O" in found.REFUSED


def test_installed_packages_are_found_during_and_after_a_call(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pydantic looks for its plugins when a model is first used, which may be in a profile."""
    package = folder / "lazy-1.2.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Name: lazy\nVersion: 1.2\n")
    monkeypatch.syspath_prepend(str(folder))

    assert call_without_io(importlib.metadata.version, "lazy") == "1.2"
    assert importlib.metadata.version("lazy") == "1.2"


def test_a_profile_may_render_templates(folder: Path) -> None:
    """Templates are part of a profile."""
    (folder / "plan.md").write_text("Plan {{SUBJECT}}.")

    text = call_without_io(render_template, folder / "plan.md", {"SUBJECT": "the sea"})

    assert text == "Plan the sea."


def test_io_after_a_template_is_refused_again(folder: Path) -> None:
    """The permission ends with the template."""

    def render_and_read() -> None:
        with templates_allowed():
            (folder / "input.txt").read_text()
        (folder / "input.txt").read_text()

    with pytest.raises(PermissionError, match="profiles do no I/O"):
        call_without_io(render_and_read)


def test_a_profile_may_log(folder: Path) -> None:
    """A handler may open its file only when the first message comes."""
    logger = logging.getLogger("tests.profile")
    handler = logging.FileHandler(folder / "profile.log", delay=True)
    logger.addHandler(handler)
    try:
        call_without_io(logger.warning, "a message")
    finally:
        logger.removeHandler(handler)
        handler.close()

    assert (folder / "profile.log").read_text() == "a message\n"


def test_other_threads_are_not_affected(folder: Path) -> None:
    """Another run in the same process may write at the same time."""
    calling, written = threading.Event(), threading.Event()

    def write() -> None:
        calling.wait(60)
        (folder / "other.txt").write_text("other")
        written.set()

    def profile() -> bool:
        calling.set()
        return written.wait(60)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert call_without_io(profile)
    finally:
        calling.set()
        thread.join()

    assert (folder / "other.txt").read_text() == "other"


def test_other_tasks_are_not_affected(folder: Path) -> None:
    """Tasks that were started before a call belong to other runs."""

    async def main() -> str:
        other = asyncio.create_task(asyncio.to_thread((folder / "input.txt").read_text))
        with pytest.raises(PermissionError):
            call_without_io((folder / "input.txt").read_text)
        return await other

    assert asyncio.run(main()) == "input"
