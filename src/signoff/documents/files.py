"""Reads the text of a file that a person wrote, and says so when there is none to read."""

from __future__ import annotations

import os
from pathlib import Path

from signoff.documents.regular_files import NotRegular, read_regular
from signoff.errors import Problem

MOST_BYTES = 1_000_000
"""A file written by hand is smaller; reading YAML much larger than this takes minutes."""


def read_text(path: Path, problems: list[Problem], *, name: str = "") -> str | None:
    """Returns the text of a file; what stands in the way goes to `problems`."""
    name = name or display_path(path)
    try:
        content = read_regular(path, MOST_BYTES, follow=True)
    except FileNotFoundError:
        problems.append(Problem(name, "is not there"))
        return None
    except IsADirectoryError:
        problems.append(Problem(name, "is a folder, not a file"))
        return None
    except NotRegular as error:
        problems.append(Problem(name, str(error.strerror)))
        return None
    except OSError as error:
        problems.append(Problem(name, f"cannot be read: {error.strerror or error}"))
        return None
    if len(content) > MOST_BYTES:
        problems.append(Problem(name, f"is larger than {MOST_BYTES:,} bytes", "split it up"))
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problems.append(Problem(f"{name}:{line}", "cannot be read: it is not UTF-8 text"))
        return None


def display_path(path: Path) -> str:
    """Returns a path as people would write it: short where it lies below the current folder."""
    try:
        return os.fspath(path.relative_to(Path.cwd())) if path.is_absolute() else os.fspath(path)
    except ValueError:
        return os.fspath(path)
