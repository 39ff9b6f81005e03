"""Paths that come from models, files and names, checked before anything is written.

They are treated as hostile. The rules are the same on every system, so a workflow that runs here
also runs where names are compared without case, where a colon opens a hidden stream and where a
trailing dot is dropped. The last two functions find the folder that a run's programs work in.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
import unicodedata
from collections.abc import Collection
from pathlib import Path
from typing import NoReturn

from signoff.core.effects import FileRead
from signoff.core.errors import InvalidRunName, UnreadableFile, UnsafePath
from signoff.core.remedies import ShowInbox
from signoff.runtime.environment import Secrets
from signoff.runtime.ports import FilePort

LONGEST_NAME = 240
"""Bytes of one name; file systems allow at most 255."""

LONGEST_PATH = 1000
"""Bytes of a whole relative path."""

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of invisible characters; some file systems ignore them when comparing names."""

_DEVICES = frozenset(
    {"con", "prn", "aux", "nul", "conin$", "conout$"}
    | {f"{port}{digit}" for port in ("com", "lpt") for digit in "0123456789¹²³"}
)
"""Names of devices on Windows, with any file extension."""


def safe_path(
    root: Path, relative: str, *, reserved: Collection[str] = (), hidden: Collection[str] = ()
) -> Path:
    """Returns the path of `relative` under `root`; raises `UnsafePath` with the reason.

    `root` is trusted, `relative` is not: it must be plain names joined by `/`, and no
    existing part of it may be a link. First names in `reserved` (lower case) are refused, and
    hidden names too, except a first one in `hidden`.
    """
    names = _names(relative, hidden)
    if fold_name(names[0]) in reserved:
        _refuse(relative, f"{names[0]!r} belongs to the engine; choose another name")
    path = root
    for name in names:
        path = path / name
        if path.is_symlink():
            _refuse(relative, f"{name!r} is a link, and links are not followed")
    return path


def check_path(relative: str) -> None:
    """Raises `UnsafePath` for a path that can't be written under any folder."""
    _names(relative, ())


def fold_name(name: str) -> str:
    """Returns a name as file systems compare it that ignore case and Unicode composition."""
    return unicodedata.normalize("NFKC", name).casefold()


def _names(relative: str, hidden: Collection[str]) -> list[str]:
    if not isinstance(relative, str):
        raise UnsafePath(f"a path must be text, not {type(relative).__name__}")
    _check_whole(relative)
    names = relative.split("/")
    for name in names[1:] if names[0] in hidden else names:
        _check_name(relative, name)
    return names


def _check_whole(relative: str) -> None:
    if not relative:
        _refuse(relative, "it is empty")
    if not relative.isprintable():
        _check_visible(relative)
    if relative.startswith("/"):
        _refuse(relative, "it must not be absolute")
    if "\\" in relative:
        _refuse(relative, "it must not hold a backslash; names are joined by '/'")
    if ":" in relative:
        _refuse(relative, "it must not hold a colon")
    if len(relative.encode()) > LONGEST_PATH:
        _refuse(relative, f"it is longer than {LONGEST_PATH} bytes")


def _check_visible(relative: str) -> None:
    for character in relative:
        if unicodedata.category(character) in _INVISIBLE:
            _refuse(relative, f"it holds the invisible character U+{ord(character):04X}")


def _check_name(relative: str, name: str) -> None:
    if not name:
        _refuse(relative, "it holds an empty name")
    if name in (".", ".."):
        _refuse(relative, f"it must not hold {name!r}")
    # Compared as it would be shown: a wide full stop becomes a plain one on some systems.
    if unicodedata.normalize("NFKC", name).startswith("."):
        _refuse(relative, f"{name!r} is hidden")
    if name.startswith("~"):
        _refuse(relative, f"{name!r} begins with '~'")
    if name != name.strip() or name.endswith("."):
        _refuse(relative, f"{name!r} must not begin or end with a blank, or end with a dot")
    if fold_name(name).split(".")[0].rstrip() in _DEVICES:
        _refuse(relative, f"{name!r} is the name of a device")
    if len(name.encode()) > LONGEST_NAME:
        _refuse(relative, f"a name in it is longer than {LONGEST_NAME} bytes")


def _refuse(relative: str, why: str) -> NoReturn:
    path = relative if len(relative) <= 80 else f"{relative[:77]}..."
    raise UnsafePath(f"the path {path!r} cannot be used: {why}")


def current_folder() -> str:
    """Returns the working directory of this process; empty if it was removed."""
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def path_from(folder: str, path: str | None = None) -> str | None:
    """Returns a path relative to the folder a run was started in; unchanged for a process there.

    A project may have been moved since. If that folder is gone, the path is left as it is.
    """
    if not folder or folder == current_folder() or not Path(folder).is_dir():
        return path
    return str(Path(folder, path or ""))


# Names of runs: checked when the user chooses one, made up when not.


LONGEST = 100
"""Characters in a run's name; it is also the name of a directory."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def fresh_name(workflow: str) -> str:
    """Returns a name for a run without one: the workflow, the time, and random characters."""
    slug = re.sub(r"[^A-Za-z0-9]+", "-", workflow).strip("-").lower() or "run"
    return f"{slug[:60]}-{time.strftime('%m%d-%H%M%S')}-{secrets.token_hex(3)}"


def checked_name(name: str) -> str:
    """Returns a valid run name; raises `InvalidRunName` for one that could not be a directory."""
    if name.isdecimal():
        raise InvalidRunName(
            f"{name!r} is not a valid run name: numbers are names of requests",
            remedy=ShowInbox(int(name)),
        )
    if name == "latest":
        raise InvalidRunName(f"{name!r} is not a valid run name: it means the newest run")
    if _NAME.fullmatch(name):
        return name
    raise InvalidRunName(
        f"{name!r:.120} is not a valid run name; use at most {LONGEST} letters (A-Z, a-z), digits, "
        "'.', '_' and '-', starting with a letter or digit"
    )


# Reads a file of a run as text that can be recorded, for `ctx.read` and for approvals.
#
# What a file contains becomes part of the journal, so a file that cannot be recorded exactly as it
# is, such as one with a known secret, is refused.


def read_text(files: FilePort, secrets: Secrets, run: str, path: str) -> FileRead | None:
    """Returns a file of a run; None if there is none. Raises `UnsafePath` or `UnreadableFile`."""
    data = files.read(run, path)
    if data is None:
        return None
    try:
        # As it is written: a model may send half of a surrogate pair, and the run must be able to
        # read what it wrote.
        text = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise UnreadableFile(
            f"{path} is not UTF-8 text ({error.reason} at {error.start})"
        ) from error
    variable = secrets.name_in(text)
    if variable:
        raise UnreadableFile(
            f"{path} contains the value of {variable}, which would be stored; take it out"
        )
    return FileRead(path, text, hashlib.sha256(data).hexdigest())
