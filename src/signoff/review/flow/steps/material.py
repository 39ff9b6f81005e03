"""Gathers the material of a flow, once per run: files, globs, and the output of scripts.

It is recorded, so a run that is resumed tomorrow uses what was read today. Links are resolved
before a path is checked, and only files below an allowed folder are read. An error in one source is
reported and does not keep the others from being read. Running a script is an effect of its own.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from signoff.core.context import StepContext
from signoff.documents.globs import glob
from signoff.documents.regular_files import NotRegular, read_regular
from signoff.review.flow.model import Flow
from signoff.review.pure.constraint import Constraint, SourceBlock

SCRIPT_SECONDS = 30.0
N = TypeVar("N", str, Path)
T = TypeVar("T")
NOT_ALLOWED = "not run: scripts run only if the run allows them (allow_scripts)"


async def gather(ctx: StepContext, flow: Flow) -> dict[str, str]:
    """Returns the material of the goal (under an empty name) and of each constraint, by id."""
    names = [name for name, block in flow.sources.items() if block]
    if not names:
        return {}

    # What was read is recorded as the result of the item, so the prompts of a resumed run have the
    # files as they were, even if they have changed on disk.
    async def gather_one(inner: StepContext, name: str) -> str:
        read = read_material(flow, flow.sources[name], ctx.run)
        for message in (*read.errors, *read.warnings):
            inner.progress(f"sources of {name or 'the goal'}: {message}")
        outputs = [script_section(s.name, await _output(inner, flow, s)) for s in read.scripts]
        return material_text(read, outputs)

    # One item for each block: a run that is resumed here reads only what is still missing.
    texts = await ctx.map(names, gather_one, key="sources")
    return dict(zip(names, texts, strict=True))


def read_material(flow: Flow, block: SourceBlock, run: str) -> SourceText:
    """Returns the material that a run finds in files, and the scripts that print more of it."""
    allowed = [flow.home] if flow.home else []
    return read_source(block, root=flow.root, allowed=allowed, variables=_variables(flow, run))


def missing_material(flow: Flow, block: SourceBlock) -> Iterator[str]:
    """Yields which files that a block names cannot be read, and its unknown variables.

    Where scripts are allowed, those that cannot be run as well.
    """
    variables, files = _variables(flow, "NAME"), list[str]()
    for path in (*block.files, *block.globs, *block.scripts):
        try:
            filled = fill_in(path, variables)
        except SourceError as error:
            yield f"{path}: {error}"
            continue
        # The run's own folder does not exist yet.
        if path in block.files and variables["run_dir"] not in filled:
            files.append(path)
    scripts = block.scripts if flow.allow_scripts else ()
    known = tuple(each for each in scripts if "{{" not in each)
    yield from read_material(flow, SourceBlock(files=tuple(files), scripts=known), "NAME").errors


def material_text(read: SourceText, outputs: Sequence[str] = ()) -> str:
    """Returns material as prompts show it, with a line for each source that was not read."""
    missing = [f"(not read: {error})" for error in read.errors]
    return "\n\n".join(part for part in (read.text, *missing, *outputs) if part)


async def _output(ctx: StepContext, flow: Flow, script: Script) -> str:
    if not flow.allow_scripts:
        ctx.progress(f"script {script.name!r} {NOT_ALLOWED}")
        return f"({NOT_ALLOWED})"
    done = await ctx.command(
        script.argv,
        key="script",
        cwd=str(flow.root),
        timeout=SCRIPT_SECONDS,
        on_crash="rerun",
    )
    return done.stdout if done.ok else f"(failed with exit code {done.code}) {done.stderr[-500:]}"


async def analysis(ctx: StepContext, flow: Flow, constraint: Constraint, artifact: str) -> str:
    """Returns the output of a constraint's own script about the artifact; empty without one."""
    if not constraint.script.strip():
        return ""
    if not flow.allow_scripts:
        ctx.progress(f"script of {constraint.id} {NOT_ALLOWED}")
        return ""
    variables = _variables(flow, ctx.run)
    try:
        argv = split_command(constraint.script, variables)
    except SourceError as error:
        ctx.progress(f"script of {constraint.id} not run: {error}")
        return f"(not run: {error})"
    # Writing the file for every script would cost a write in each round, and most scripts read the
    # text from standard input.
    if any(variables["artifact"] in word for word in argv):
        # The run directory shows the artifact too, but only some time after the step that wrote it.
        await ctx.write(_reviewed_path(flow), artifact)
    done = await ctx.command(
        argv,
        key="analysis",
        cwd=str(flow.root),
        stdin=artifact,
        timeout=SCRIPT_SECONDS,
        on_crash="rerun",
    )
    return f"exit code {done.code}\n{done.stdout}{done.stderr}".strip()


def _variables(flow: Flow, run: str) -> Mapping[str, str]:
    """Returns the values of `{{name}}` in paths and commands."""
    home = flow.home or flow.root / ".signoff"
    folder = home / "runs" / run
    return {
        "run_dir": str(folder),
        "project_root": str(flow.root),
        "artifact": str(folder / _reviewed_path(flow)),
        "source": str(flow.root),
        "constraint_dir": str(flow.config.constraints.dir or home / "constraints"),
        "arena_home": str(home),
    }


def _reviewed_path(flow: Flow) -> str:
    """Returns where in the run's folder scripts find the artifact, under its final name."""
    return f"reviewed/{flow.config.output.filename}"


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
    files = dict.fromkeys(
        (*reader.collect(block.files, reader.named), *reader.matching(block.globs))
    )
    sections = list(reader.collect(files, reader.section))
    if block.inline.strip():
        sections.append(f"### INLINE SOURCE\n\n{block.inline.strip()}\n")
    scripts = tuple(reader.collect(block.scripts, reader.script))
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

    def collect(self, names: Iterable[N], read: Callable[[N], T]) -> Iterator[T]:
        """Yields what is read of each name; what cannot be used is an error and no exception."""
        for name in names:
            try:
                yield read(name)
            except SourceError as error:
                shown = self.display(name) if isinstance(name, Path) else name
                self.errors.append(f"{shown}: {error}")

    def named(self, path: str) -> Path:
        """Returns the resolved path of a file that is named."""
        return self.resolve(fill_in(path, self.variables))

    def matching(self, patterns: Sequence[str]) -> list[Path]:
        """Returns the files that globs match, without duplicates."""
        matches = self.collect(patterns, self.match)
        files = list(dict.fromkeys(file for found in matches for file in found))
        if len(files) > MOST_FILES:
            warning = f"the globs match {len(files)} files; only the first {MOST_FILES} are read"
            self.warnings.append(warning)
        return files[:MOST_FILES]

    def match(self, pattern: str) -> list[Path]:
        """Returns the files that one glob matches, without hidden ones it does not name."""
        base, relative = self.split(fill_in(pattern, self.variables))
        try:
            paths = glob(base, relative, MOST_MATCHED + 1)
        except ValueError as error:
            raise SourceError(f"is not a valid pattern ({error})") from error
        if len(paths) > MOST_MATCHED:
            raise SourceError(f"matches more than {MOST_MATCHED:,} paths; use a narrower pattern")
        names_hidden = any(part.startswith(".") for part in Path(relative).parts)
        candidates = (p for p in paths if names_hidden or not _hidden(p.relative_to(base)))
        # A file that the user may not look at is an error of its own and not the end of the run.
        matched = self.collect(sorted(candidates), self.matched)
        found = [path for path in matched if path is not None]
        if not found:
            self.warnings.append(f"{pattern}: matches no file")
        return found

    def matched(self, path: Path) -> Path | None:
        """Returns the resolved path of a file that a glob matches; None for a folder."""
        resolved = self.resolve(str(path))
        return resolved if _is_file(resolved) else None

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

    def section(self, file: Path) -> str:
        """Returns a file's text with a heading."""
        return f"### FILE: {self.display(file)}\n\n{_text(file).strip()}\n"

    def display(self, file: Path) -> str:
        """Returns a path relative to the project, for headings and messages."""
        for base in (self.root, self.root.resolve()):
            if file.is_relative_to(base):
                return file.relative_to(base).as_posix()
        return file.name

    def script(self, command: str) -> Script:
        """Returns a program to run; a value with spaces stays one argument."""
        program, *arguments = split_command(command, self.variables)
        return Script(command, (self.program(program), *arguments))

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
