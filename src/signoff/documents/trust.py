"""Remembers which lines of a project its user trusts, outside of the project.

A line is what a project's file says about something that could harm its user: a setting that starts
a program, a module that is imported. Each has a file of its own, named by a digest of the project's
path and the line. So answers need no lock, and another line of the same project is asked about
again. What makes a line dangerous is decided elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from signoff.core.errors import NotTrusted
from signoff.documents.regular_files import make_private_folders, replace_private

VARIABLE = "SIGNOFF_TRUST"
"""The environment variable that trusts every project, for CI and containers."""

SHOWN = 20
"""Lines that an error shows, with the number of the others."""
LONGEST = 300
"""Characters of a line that are shown."""


class TrustLine(NamedTuple):
    """A line of a project that needs its user's trust."""

    file: str
    """The path seen from the project's folder."""
    text: str
    """What it says; the digest covers it, and the path, but not the number."""
    number: int = 0
    """Where in the file it is; 0 if it is about the whole file."""

    def __str__(self) -> str:
        """Returns it on one line, as safe to print as text of strangers can be."""
        where = f"{self.file}:{self.number}" if self.number else self.file
        more = len(self.text) - LONGEST
        cut = f" ... and {more} characters more" if more > 0 else ""
        return f"{visible(where)}  {visible(self.text[:LONGEST])}{cut}"


Trust = Callable[[str], None]
"""Raises `NotTrusted` unless the user trusts the settings of a project, and the definitions in a
folder of its home (or a single one); an empty name is for the settings alone."""


def visible(text: str) -> str:
    """Returns a text on one line, with everything that a terminal does not show escaped."""
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in text)


def trusts_all(environment: Mapping[str, str]) -> bool:
    """Tells whether the environment trusts every project."""
    return environment.get(VARIABLE, "").lower() not in ("", "0", "false", "no")


def untrusted(
    home: Path, lines: Iterable[TrustLine], environment: Mapping[str, str]
) -> list[TrustLine]:
    """Returns the lines that the user has not trusted yet."""
    if trusts_all(environment):
        return []
    folder = _folder(home, environment)
    return [each for each in lines if not (folder / _digest(each)).is_file()]


def require(
    home: Path,
    lines: Iterable[TrustLine],
    environment: Mapping[str, str],
    *,
    asks: bool = True,
) -> None:
    """Raises `NotTrusted` if the user has not trusted all of the lines.

    `asks` says that a surface may ask the user instead.
    """
    if missing := untrusted(home, lines, environment):
        shown = [str(each) for each in missing[:SHOWN]]
        raise NotTrusted(str(home), shown, len(missing), asks=asks)


def remember(home: Path, lines: Iterable[TrustLine], environment: Mapping[str, str]) -> None:
    """Stores that the user trusts these lines."""
    missing = untrusted(home, lines, environment)
    if not missing:
        return
    folder = _folder(home, environment)
    make_private_folders(folder)
    for each in missing:
        about = {"project": str(_key(home)), **each._asdict()}
        replace_private(folder / _digest(each), [json.dumps(about)])


def forget(home: Path, environment: Mapping[str, str]) -> int:
    """Forgets what the user trusted in a project; returns how many lines that were."""
    folder = _folder(home, environment)
    found = list(folder.iterdir()) if folder.is_dir() else []
    for each in found:
        each.unlink(missing_ok=True)
    return len(found)


def _folder(home: Path, environment: Mapping[str, str]) -> Path:
    """Returns where the answers about a project are stored."""
    digest = hashlib.sha256(os.fsencode(_key(home))).hexdigest()
    return _state(environment) / "signoff" / "trusted" / digest[:32]


def _key(home: Path) -> Path:
    # A `.signoff` that is a link to that of another project is not that project: commands in its
    # settings would run here.
    return home.parent.resolve() / home.name


def _state(environment: Mapping[str, str]) -> Path:
    if sys.platform == "win32" and environment.get("LOCALAPPDATA"):
        return Path(environment["LOCALAPPDATA"])
    named = Path(environment.get("XDG_STATE_HOME") or "")
    # A relative one would be inside of the project, which could then trust itself.
    if named.is_absolute():
        return named
    try:
        return Path.home() / ".local" / "state"
    except RuntimeError:
        # A user without a name and a home, as in some containers; nothing can be stored there.
        return Path("/.local/state")


def _digest(line: TrustLine) -> str:
    text = json.dumps([line.file, line.text])
    return hashlib.sha256(text.encode()).hexdigest()
