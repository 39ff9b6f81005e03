"""Reads the material a goal or a constraint names: files, globs, and the text itself.

Paths are judged where they really lead, links included, and only what lies below an allowed
folder is read. Whatever is wrong with one of them is told in words and never stops the
others. Programs are only listed here: running one is an effect, and not ours.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from signoff.documents.bounded import EvaluationFailed, OutOfBounds, glob
from signoff.documents.regular_files import NotRegular, read_regular
from signoff.review.constraint import SourceBlock

MOST_BYTES = 1_000_000
"""Of one file."""
MOST_FILES = 100
"""Of all globs of a block."""
MOST_LOOKED_AT = 20_000
"""Paths that globs may come up with before the search is given up."""
MANY_CHARACTERS = 100_000
"""Of all material of a block; more is a warning."""

_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


class SourceError(Exception):
    """Material cannot be used; the message says why."""


@dataclass(frozen=True)
class Script:
    """A program that prints material."""

    name: str
    """As it stands in the file."""
    argv: tuple[str, ...]


@dataclass(frozen=True)
class SourceText:
    """What was read, and what could not be."""

    text: str = ""
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    scripts: tuple[Script, ...] = ()
    """Programs whose output belongs to it, if they may run."""


def read_source(
    block: SourceBlock,
    *,
    root: Path,
    allowed: Sequence[Path],
    variables: Mapping[str, str],
) -> SourceText:
    """Returns the material of a block; relative paths start at `root`."""
    reading = _SourceReader(root, (root, *allowed), variables)
    files = dict.fromkeys((*reading.named(block.files), *reading.matching(block.globs)))
    sections = [section for file in files if (section := reading.section(file))]
    if block.inline.strip():
        sections.append(f"### INLINE SOURCE\n\n{block.inline.strip()}\n")
    scripts = tuple(reading.scripts(block.scripts))
    text = "\n".join(sections)
    if len(text) > MANY_CHARACTERS:
        reading.warnings.append(f"the source material is long: {len(text):,} characters")
    return SourceText(text, tuple(reading.errors), tuple(reading.warnings), scripts)


def script_section(name: str, output: str) -> str:
    """Returns a program's output as it stands in the material."""
    return f"### SCRIPT: {name}\n\n{output.strip()}\n"


def split_command(command: str, variables: Mapping[str, str]) -> list[str]:
    """Returns a command as a list, its variables filled in; raises `SourceError`.

    Values are filled in after it was split, so one with blanks stays one argument, quoted or not.
    """
    try:
        words = shlex.split(_VARIABLE.sub(r"{{\1}}", command))
    except ValueError as error:
        raise SourceError(f"no usable command ({error})") from error
    if not words:
        raise SourceError("no usable command")
    return [_expanded(word, variables) for word in words]


@dataclass
class _SourceReader:
    """One reading of a block, and what went wrong so far."""

    root: Path
    allowed: tuple[Path, ...]
    variables: Mapping[str, str]
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def named(self, paths: Sequence[str]) -> Iterator[Path]:
        """Yields where the named files really are."""
        for path in paths:
            try:
                yield self.inside(self.expanded(path))
            except SourceError as wrong:
                self.errors.append(f"{path}: {wrong}")

    def matching(self, patterns: Sequence[str]) -> list[Path]:
        """Returns the files all globs find, in order of their paths, none twice."""
        found: dict[Path, None] = {}
        for pattern in patterns:
            try:
                matched = self.matched(pattern)
            except SourceError as wrong:
                self.errors.append(f"{pattern}: {wrong}")
                continue
            if not matched:
                self.warnings.append(f"{pattern}: matches no file")
            found.update(dict.fromkeys(matched))
        if len(found) > MOST_FILES:
            told = f"the globs match {len(found)} files; only the first {MOST_FILES} are read"
            self.warnings.append(told)
        return list(found)[:MOST_FILES]

    def matched(self, pattern: str) -> list[Path]:
        """Returns the files one glob finds, without hidden ones it does not name."""
        base, below = self.split(self.expanded(pattern))
        try:
            looked_at = glob(base, below, MOST_LOOKED_AT + 1)
        except OutOfBounds as error:
            raise SourceError(f"is too complex a pattern: {error}; use fewer '**'") from error
        except (ValueError, EvaluationFailed) as error:
            raise SourceError(f"no usable pattern ({error})") from error
        if len(looked_at) > MOST_LOOKED_AT:
            raise SourceError(f"matches more than {MOST_LOOKED_AT:,} paths; name a narrower one")
        named_hidden = any(part.startswith(".") for part in Path(below).parts)
        shown = (p for p in looked_at if named_hidden or not _hidden(p.relative_to(base)))
        return [place for p in sorted(shown) if (place := self.file_inside(p, pattern))]

    def file_inside(self, path: Path, pattern: str) -> Path | None:
        """Returns where a found file really is; one that leads elsewhere is told about."""
        try:
            place = self.inside(str(path))
            return place if _is_file(place) else None
        except SourceError as wrong:
            self.errors.append(f"{pattern}: {self.shown(path)}: {wrong}")
            return None

    def split(self, pattern: str) -> tuple[Path, str]:
        """Returns the folder a glob starts in and the glob below it."""
        _refuse_up(pattern)
        if not Path(pattern).is_absolute():
            return self.root, pattern
        for base in self.allowed:
            if Path(pattern).is_relative_to(base) and Path(pattern) != base:
                return base, str(Path(pattern).relative_to(base))
        raise SourceError("lies outside the project")

    def inside(self, path: str) -> Path:
        """Returns where a path really leads; raises `SourceError` when that is elsewhere."""
        _refuse_up(path)
        try:
            place = (self.root / path).resolve()
            homes = [base.resolve() for base in self.allowed]
        except (OSError, ValueError, RuntimeError) as error:
            raise SourceError(f"no usable path ({error})") from error
        if not any(place.is_relative_to(home) for home in homes):
            raise SourceError("lies outside the project")
        return place

    def expanded(self, path: str) -> str:
        """Returns a path with its variables filled in."""
        return _expanded(path, self.variables)

    def section(self, file: Path) -> str:
        """Returns a file with its heading, or nothing after telling why."""
        shown = self.shown(file)
        try:
            return f"### FILE: {shown}\n\n{_text(file).strip()}\n"
        except SourceError as wrong:
            self.errors.append(f"{shown}: {wrong}")
            return ""

    def shown(self, file: Path) -> str:
        """Returns a path as the project's people know it."""
        for base in (self.root, self.root.resolve()):
            if file.is_relative_to(base):
                return file.relative_to(base).as_posix()
        return file.name

    def scripts(self, commands: Sequence[str]) -> Iterator[Script]:
        """Yields the programs to run, each in the words of its command."""
        for command in commands:
            try:
                yield Script(command, self.argv(command))
            except SourceError as wrong:
                self.errors.append(f"{command}: {wrong}")

    def argv(self, command: str) -> tuple[str, ...]:
        """Returns a command as a list; a value with blanks in it stays one argument."""
        program, *arguments = split_command(command, self.variables)
        return (self.program(program), *arguments)

    def program(self, name: str) -> str:
        """Returns a file of the project by its full path, and any other program by its name."""
        own = "/" in name or os.sep in name or _is_file(self.root / name)
        if not own and shutil.which(name):
            return name
        place = self.inside(name)
        if not _is_file(place):
            raise SourceError("there is no such program")
        if not os.access(place, os.X_OK):
            raise SourceError("it may not be executed (chmod +x makes it so)")
        return str(place)


def _expanded(path: str, variables: Mapping[str, str]) -> str:
    if not path.strip() or "\0" in path:
        raise SourceError("no usable path")
    unknown = [name for name in _VARIABLE.findall(path) if name not in variables]
    if unknown:
        known = ", ".join(sorted(variables)) or "none"
        raise SourceError(f"unknown variable {unknown[0]!r}; known here: {known}")
    return _VARIABLE.sub(lambda match: variables[match[1]], path)


def _refuse_up(path: str) -> None:
    if ".." in re.split(r"[\\/]", path):
        raise SourceError("'..' is not followed")


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _text(file: Path) -> str:
    """Returns a file's text; raises `SourceError`."""
    try:
        # Followed already, and judged by where it leads: a link here was put there since.
        content = read_regular(file, MOST_BYTES)
    except (FileNotFoundError, IsADirectoryError, NotRegular) as error:
        raise SourceError("there is no such file") from error
    except OSError as error:
        raise SourceError(f"cannot be read ({error.strerror})") from error
    if len(content) > MOST_BYTES:
        raise SourceError(f"is larger than {MOST_BYTES:,} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError("is no text in UTF-8") from error
    if "\0" in text:
        raise SourceError("is no text")
    return text


def _is_file(path: Path) -> bool:
    """Tells whether a plain file is there; raises `SourceError` when that cannot be told."""
    try:
        return path.is_file()
    except OSError as error:
        raise SourceError(f"cannot be read ({error.strerror})") from error
