"""Reads text files that users wrote; a file that cannot be read becomes a problem."""

from __future__ import annotations

import os
from pathlib import Path

from signoff.core.errors import Problem
from signoff.documents.regular_files import NotRegular, read_regular

MOST_BYTES = 1_000_000
"""Files written by hand are smaller, and parsing much larger YAML takes minutes."""


def read_text(
    path: Path, problems: list[Problem], *, name: str = "", most: int = MOST_BYTES
) -> str | None:
    """Returns the text of a file; None after adding to `problems` if it cannot be read."""
    name = name or display_path(path)
    try:
        content = read_regular(path, most, follow=True)
    except OSError as error:
        problems.append(Problem(name, _read_error(error)))
        return None
    if len(content) > most:
        problems.append(Problem(name, f"is larger than {most:,} bytes", "split it up"))
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problems.append(Problem(f"{name}:{line}", "cannot be read: it is not UTF-8 text"))
        return None


def _read_error(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "does not exist"
    if isinstance(error, NotRegular | IsADirectoryError):
        return str(error.strerror)
    return f"cannot be read: {error.strerror or error}"


def display_path(path: Path) -> str:
    """Returns a path for messages: relative if it is below the current folder."""
    below = path.is_absolute() and path.is_relative_to(Path.cwd())
    return os.fspath(path.relative_to(Path.cwd()) if below else path)
