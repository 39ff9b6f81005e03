"""Globs: the files below a folder that a pattern names, and the patterns that are about a path.

A pattern is matched part by part, and what is remembered is how many of its parts may be used up.
So the time grows with the pattern and the path only, however many `**` there are: patterns come
from files that others wrote, and a regular expression of such a pattern can run for years.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from fnmatch import translate
from functools import lru_cache
from itertools import islice
from pathlib import Path, PurePath
from typing import NamedTuple

_Part = re.Pattern[str] | None
"""What one part of a path has to match; None for `**`, which is any folders or none."""

_ESCAPED = re.compile(r"\\(.)")


def glob(folder: Path, pattern: str, most: int) -> list[Path]:
    """Returns the paths below a folder that a glob matches, at most `most` of them.

    Raises `ValueError` for a pattern that is none.
    """
    path = PurePath(os.path.normcase(pattern))
    if path.is_absolute() or not path.parts:
        raise ValueError(f"{pattern!r} must be relative, and not empty")
    if any("**" in part and part != "**" for part in path.parts):
        raise ValueError("'**' can only be an entire part of a path")
    return list(islice(_find(folder, _parts(path.parts)), most))


def matches(patterns: Iterable[str], path: str) -> bool:
    """Whether the last pattern that is about a file includes it; `!` excludes again.

    The patterns are those of a `.gitignore`: without a `/` before its end, one is about a name in
    any folder, and one that names a folder is about everything in it.
    """
    names = path.split("/")
    for pattern in reversed(_ignore_patterns(tuple(patterns))):
        if pattern.is_about(names):
            return pattern.includes
    return False


class _IgnorePattern(NamedTuple):
    """One line of a `.gitignore`."""

    parts: tuple[_Part, ...]
    includes: bool
    only_folders: bool

    def is_about(self, names: Sequence[str]) -> bool:
        used = _with_skipped({0}, self.parts)
        for number, name in enumerate(names, 1):
            used = _step(used, self.parts, name, is_folder=True)
            is_folder = number < len(names)
            if len(self.parts) in used and (is_folder or not self.only_folders):
                return True
        return False


@lru_cache(maxsize=512)
def _ignore_patterns(lines: tuple[str, ...]) -> list[_IgnorePattern]:
    return [_ignore_pattern(line) for line in map(_trimmed, lines) if line and line[0] != "#"]


def _trimmed(line: str) -> str:
    """Returns a line without the spaces at its end, of which the first may be escaped."""
    text = line.rstrip()
    return f"{text} " if text.endswith("\\") and text != line else text


def _ignore_pattern(line: str) -> _IgnorePattern:
    includes = not line.startswith("!")
    pattern = line.removeprefix("!")
    names = [name for name in pattern.split("/") if name]
    if "/" not in pattern.rstrip("/"):
        names = ["**", *names]
    if names[-1:] == ["**"]:
        # `docs/**` is what is in the folder, not the folder.
        names.append("*")
    return _IgnorePattern(_parts(names), includes, only_folders=pattern.endswith("/"))


def _parts(names: Iterable[str]) -> tuple[_Part, ...]:
    return tuple(None if name == "**" else re.compile(translate(_plain(name))) for name in names)


def _plain(name: str) -> str:
    """Returns a part with its escaped characters in the form that `fnmatch` reads."""
    return _ESCAPED.sub(lambda found: f"[{found[1]}]" if found[1] in "*?[" else found[1], name)


def _find(folder: Path, parts: tuple[_Part, ...]) -> Iterator[Path]:
    """Yields the paths that match, each once; every folder is read once."""
    start = _with_skipped({0}, parts)
    if len(parts) in start:
        yield folder
    waiting = [(str(folder), start)]
    while waiting:
        place, used = waiting.pop()
        with suppress(OSError), os.scandir(place) as entries:
            for entry in entries:
                # `**` stands for folders, and does not follow links.
                is_folder = entry.is_dir(follow_symlinks=False)
                now = _step(used, parts, os.path.normcase(entry.name), is_folder=is_folder)
                if len(parts) in now:
                    yield Path(entry.path)
                if now - {len(parts)} and entry.is_dir():
                    waiting.append((entry.path, now))


def _step(used: set[int], parts: Sequence[_Part], name: str, *, is_folder: bool) -> set[int]:
    """Returns how many parts may be used up after one more name."""
    now = set()
    for number in used:
        if number < len(parts):
            part = parts[number]
            if part is None and is_folder:
                now.add(number)
            elif part is not None and part.match(name):
                now.add(number + 1)
    return _with_skipped(now, parts)


def _with_skipped(used: set[int], parts: Sequence[_Part]) -> set[int]:
    """Adds that each `**` that comes next may stand for no folder at all."""
    found = set(used)
    for number, part in enumerate(parts):
        if number in found and part is None:
            found.add(number + 1)
    return found
