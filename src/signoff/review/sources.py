"""Reads the source material of a goal or a constraint: files, globs and inline text.

Links are resolved before a path is checked, and only files below an allowed folder are read.
An error in one source is reported and does not keep the others from being read. Scripts are
only listed here: running one is an effect, and the step that needs the material does that.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from signoff.documents.globs import glob
from signoff.documents.regular_files import NotRegular, read_regular
from signoff.review.constraint import SourceBlock

MOST_BYTES = 1_000_000
"""The largest file."""
MOST_FILES = 100
"""Files that all globs of a block may match."""
MOST_MATCHED = 20_000
"""Paths that one glob may match before it is refused."""
MANY_CHARACTERS = 100_000
"""Length of a block's material above which there is a warning."""

_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


class SourceError(Exception):
    """A source cannot be used; the message says why."""


@dataclass(frozen=True)
class Script:
    """A program that prints material."""

    name: str
    """The command as written in the file."""
    argv: tuple[str, ...]


@dataclass(frozen=True)
class SourceText:
    """The material that was read, and the errors."""

    text: str = ""
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    scripts: tuple[Script, ...] = ()
    """Programs whose output belongs to the material, if they are allowed to run."""


def read_source(
    block: SourceBlock,
    *,
    root: Path,
    allowed: Sequence[Path],
    variables: Mapping[str, str],
) -> SourceText:
    """Returns the material of a block; relative paths start at `root`."""
    reader = _SourceReader(root, (root, *allowed), variables)
    files = dict.fromkeys((*reader.resolve_files(block.files), *reader.find_files(block.globs)))
    sections = [section for file in files if (section := reader.section(file))]
    if block.inline.strip():
        sections.append(f"### INLINE SOURCE\n\n{block.inline.strip()}\n")
    scripts = tuple(reader.scripts(block.scripts))
    text = "\n".join(sections)
    if len(text) > MANY_CHARACTERS:
        reader.warnings.append(f"the source material is long: {len(text):,} characters")
    return SourceText(text, tuple(reader.errors), tuple(reader.warnings), scripts)


def script_section(name: str, output: str) -> str:
    """Returns a program's output with its heading, as part of the material."""
    return f"### SCRIPT: {name}\n\n{output.strip()}\n"


def split_command(command: str, variables: Mapping[str, str]) -> list[str]:
    """Returns the arguments of a command with variables filled in; raises `SourceError`.

    The command is split first, so a value with spaces stays one argument, quoted or not.
    """
    try:
        arguments = shlex.split(_VARIABLE.sub(r"{{\1}}", command))
    except ValueError as error:
        raise SourceError(f"is not a valid command ({error})") from error
    if not arguments:
        raise SourceError("is not a valid command")
    return [fill_in(argument, variables) for argument in arguments]


@dataclass
class _SourceReader:
    """Reads one block and collects errors and warnings."""

    root: Path
    allowed: tuple[Path, ...]
    variables: Mapping[str, str]
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def resolve_files(self, paths: Sequence[str]) -> Iterator[Path]:
        """Yields the resolved paths of the files that are named."""
        for path in paths:
            try:
                yield self.resolve(self.fill_in(path))
            except SourceError as error:
                self.errors.append(f"{path}: {error}")

    def find_files(self, patterns: Sequence[str]) -> list[Path]:
        """Returns the files that the globs match, without duplicates."""
        files: dict[Path, None] = {}
        for pattern in patterns:
            try:
                matches = self.match(pattern)
            except SourceError as error:
                self.errors.append(f"{pattern}: {error}")
                continue
            if not matches:
                self.warnings.append(f"{pattern}: matches no file")
            files.update(dict.fromkeys(matches))
        if len(files) > MOST_FILES:
            warning = f"the globs match {len(files)} files; only the first {MOST_FILES} are read"
            self.warnings.append(warning)
        return list(files)[:MOST_FILES]

    def match(self, pattern: str) -> list[Path]:
        """Returns the files that one glob matches, without hidden ones it does not name."""
        base, relative = self.split(self.fill_in(pattern))
        try:
            paths = glob(base, relative, MOST_MATCHED + 1)
        except ValueError as error:
            raise SourceError(f"is not a valid pattern ({error})") from error
        if len(paths) > MOST_MATCHED:
            raise SourceError(f"matches more than {MOST_MATCHED:,} paths; use a narrower pattern")
        names_hidden = any(part.startswith(".") for part in Path(relative).parts)
        candidates = (p for p in paths if names_hidden or not _hidden(p.relative_to(base)))
        return [file for p in sorted(candidates) if (file := self.resolve_match(p, pattern))]

    def resolve_match(self, path: Path, pattern: str) -> Path | None:
        """Returns the resolved path of a matching file; None if it cannot be used."""
        try:
            resolved = self.resolve(str(path))
            return resolved if _is_file(resolved) else None
        except SourceError as error:
            self.errors.append(f"{pattern}: {self.display(path)}: {error}")
            return None

    def split(self, pattern: str) -> tuple[Path, str]:
        """Returns the folder in which a glob starts, and the glob relative to it."""
        _refuse_parent(pattern)
        if not Path(pattern).is_absolute():
            return self.root, pattern
        for base in self.allowed:
            if Path(pattern).is_relative_to(base) and Path(pattern) != base:
                return base, str(Path(pattern).relative_to(base))
        raise SourceError("is outside the project")

    def resolve(self, path: str) -> Path:
        """Returns a path with links resolved; raises `SourceError` if it is not allowed."""
        _refuse_parent(path)
        try:
            resolved = (self.root / path).resolve()
            folders = [base.resolve() for base in self.allowed]
        except (OSError, ValueError, RuntimeError) as error:
            raise SourceError(f"is not a valid path ({error})") from error
        if not any(resolved.is_relative_to(folder) for folder in folders):
            raise SourceError("is outside the project")
        return resolved

    def fill_in(self, path: str) -> str:
        """Returns a path with its variables filled in."""
        return fill_in(path, self.variables)

    def section(self, file: Path) -> str:
        """Returns a file's text with a heading; empty after adding an error."""
        name = self.display(file)
        try:
            return f"### FILE: {name}\n\n{_text(file).strip()}\n"
        except SourceError as error:
            self.errors.append(f"{name}: {error}")
            return ""

    def display(self, file: Path) -> str:
        """Returns a path relative to the project, for headings and messages."""
        for base in (self.root, self.root.resolve()):
            if file.is_relative_to(base):
                return file.relative_to(base).as_posix()
        return file.name

    def scripts(self, commands: Sequence[str]) -> Iterator[Script]:
        """Yields the programs to run."""
        for command in commands:
            try:
                yield Script(command, self.argv(command))
            except SourceError as error:
                self.errors.append(f"{command}: {error}")

    def argv(self, command: str) -> tuple[str, ...]:
        """Returns a command as a list; a value with spaces stays one argument."""
        program, *arguments = split_command(command, self.variables)
        return (self.program(program), *arguments)

    def program(self, name: str) -> str:
        """Returns the full path of a project file, or the name of an installed program."""
        in_project = "/" in name or os.sep in name or _is_file(self.root / name)
        if not in_project and shutil.which(name):
            return name
        path = self.resolve(name)
        if not _is_file(path):
            raise SourceError("no such program")
        if not os.access(path, os.X_OK):
            raise SourceError("is not executable (run chmod +x)")
        return str(path)


def fill_in(path: str, variables: Mapping[str, str]) -> str:
    """Returns a path or an argument with its variables filled in; raises `SourceError`."""
    if not path.strip() or "\0" in path:
        raise SourceError("is not a valid path")
    unknown = [name for name in _VARIABLE.findall(path) if name not in variables]
    if unknown:
        valid = ", ".join(sorted(variables)) or "none"
        raise SourceError(f"unknown variable {unknown[0]!r}; valid: {valid}")
    return _VARIABLE.sub(lambda match: variables[match[1]], path)


def _refuse_parent(path: str) -> None:
    if ".." in re.split(r"[\\/]", path):
        raise SourceError("'..' is not allowed")


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _text(file: Path) -> str:
    """Returns a file's text; raises `SourceError`."""
    try:
        # The path was resolved and checked before. If it is a link now, the file was replaced
        # in the meantime, so links are not followed here.
        content = read_regular(file, MOST_BYTES)
    except (FileNotFoundError, IsADirectoryError, NotRegular) as error:
        raise SourceError("no such file") from error
    except OSError as error:
        raise SourceError(f"cannot be read ({error.strerror})") from error
    if len(content) > MOST_BYTES:
        raise SourceError(f"is larger than {MOST_BYTES:,} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError("is not UTF-8 text") from error
    if "\0" in text:
        raise SourceError("is not text")
    return text


def _is_file(path: Path) -> bool:
    """Whether a regular file exists; raises `SourceError` if that cannot be checked."""
    try:
        return path.is_file()
    except OSError as error:
        raise SourceError(f"cannot be read ({error.strerror})") from error
