"""Finds definitions by name: workflows in Python modules, and what notations find by syntax alone.

Every file is parsed first, and only files that assign `WORKFLOW` are imported, so a search runs no
unrelated code. Files that cannot be used and names that are used twice are all reported together.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TypeVar

from signoff.core.errors import InvalidWorkflow, Problem, SignoffError, UnknownName
from signoff.core.workflow import Workflow
from signoff.documents.files import display_path
from signoff.documents.python_files import extended_import_path, import_file
from signoff.documents.regular_files import read_regular

NAME = "WORKFLOW"
_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages"})


@dataclass(frozen=True)
class Definition:
    """Something that was found under a name, before it is imported."""

    name: str
    origin: str
    """Where it comes from, for users."""
    description: str = ""
    """As far as its source shows it."""
    problem: Problem | None = None
    """Why it cannot be used."""


D = TypeVar("D", bound=Definition)


def checked_names(found: Iterable[D], noun: str) -> list[D]:
    """Returns definitions by name; one that shares its name with another has that as a problem.

    None of the two is used: otherwise the order of files would decide which one runs.
    """
    every = sorted(found, key=lambda each: each.name)
    times = Counter(each.name for each in every)

    def checked(one: D) -> D:
        if one.problem is not None or times[one.name] == 1:
            return one
        origins = " and ".join(each.origin for each in every if each.name == one.name)
        what = f"defined twice: {origins}"
        return replace(one, problem=Problem(f"{noun} {one.name!r}", what, "rename or remove one"))

    return [checked(each) for each in every]


def find_definition(name: str, found: Sequence[D], noun: str, invalid: type[InvalidWorkflow]) -> D:
    """Returns the definition of a name; raises `UnknownName`, or `invalid` if it cannot be used."""
    for each in found:
        if each.name == name and each.problem is None:
            return each
        if each.name == name and each.problem is not None:
            raise invalid(name, [each.problem])
    unknown = UnknownName(noun, name, [each.name for each in found if each.problem is None])
    problems = [each.problem for each in found if each.problem is not None]
    if not problems:
        raise unknown
    # The one that is missing is often the broken one.
    raise invalid(name, [Problem(f"{noun} {name!r}", str(unknown)), *problems])


def reading_problem(error: Exception, origin: str) -> Problem:
    """Returns why a source cannot be read."""
    if isinstance(error, SyntaxError):
        return Problem(f"{origin}:{error.lineno}", f"SyntaxError: {error.msg}")
    return Problem(origin, f"cannot be read: {error}")


@dataclass(frozen=True)
class DiscoveredWorkflow:
    """A workflow and its file."""

    workflow: Workflow
    path: Path


@dataclass(frozen=True)
class Discovery:
    """All workflows that were found, and the problems of files that could not be read."""

    found: tuple[DiscoveredWorkflow, ...]
    problems: tuple[Problem, ...]

    @property
    def names(self) -> list[str]:
        """The names of all workflows."""
        return sorted({found.workflow.name for found in self.found})


def discover_files(
    files: Iterable[Path],
    problems: Sequence[Problem] = (),
    load: Callable[[Path], Workflow | None] | None = None,
) -> Discovery:
    """Loads the workflows of all files; `load` is for files that are not all Python modules.

    `problems` are those of the search for the files.
    """
    load = load or load_module
    found, collected = [], list(problems)
    for path in dict.fromkeys(file.resolve() for file in files):
        with _collected(path, collected):
            workflow = load(path)
            if workflow is not None:
                found.append(DiscoveredWorkflow(workflow, path))
    return Discovery(tuple(found), (*collected, *_duplicates(found)))


def source_files(source: str, root: Path, problems: list[Problem]) -> list[Path]:
    """Returns the Python files of a folder, a file or a module; adds a problem if it is neither."""
    file = root / Path(source).expanduser()
    path = file if file.exists() else locate_module(source)
    if path is None:
        what = "is neither a folder nor a module"
        problems.append(Problem(f"workflows: {source}", what, f"searched in {root}"))
        return []
    return python_files(path) if path.is_dir() else [path]


def python_files(folder: Path) -> list[Path]:
    """Returns the Python files in a folder and its subfolders, hidden ones left out."""
    return [
        path
        for path in sorted(folder.rglob("*.py"))
        if not any(
            part in _SKIPPED_FOLDERS or part.startswith(".")
            for part in path.relative_to(folder).parts
        )
    ]


def load_module(path: Path) -> Workflow | None:
    """Returns the workflow of a file; None, without importing it, if it assigns none."""
    text = read_regular(path, None, follow=True).decode("utf-8-sig")
    if assigned_value(text) is None:
        return None
    value = getattr(import_file(path), NAME)
    if isinstance(value, Workflow):
        return value
    what = f"{NAME} is {type(value).__name__}, not a Workflow"
    raise InvalidWorkflow(path.name, [Problem(str(path), what)])


def assigned_value(text: str) -> ast.expr | None:
    """Returns what a module assigns to `WORKFLOW`; None if nothing. Raises SyntaxError."""
    if NAME not in text:
        return None
    for node in ast.parse(text).body:
        match node:
            case ast.Assign(targets=targets, value=value):
                if any(isinstance(t, ast.Name) and t.id == NAME for t in targets):
                    return value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                if name == NAME:
                    return value
    return None


@contextmanager
def _collected(path: Path, problems: list[Problem]) -> Iterator[None]:
    """Adds to `problems` why a file cannot be used, instead of raising it."""
    try:
        yield
    except InvalidWorkflow as error:
        problems.extend(
            Problem(_with_file(path, p.where), p.what, p.remedy) for p in error.problems
        )
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        problems.append(reading_problem(error, str(path)))
    except SignoffError as error:
        problems.append(Problem(str(path), str(error)))


def _duplicates(found: Sequence[DiscoveredWorkflow]) -> Iterator[Problem]:
    """Yields a problem for each name that several files use."""
    by_name: dict[str, list[str]] = {}
    for each in found:
        by_name.setdefault(each.workflow.name, []).append(str(each.path))
    for name, paths in by_name.items():
        if len(paths) > 1:
            yield Problem(
                f"workflow {name!r}", f"is defined in {', '.join(paths)}", "give each its own name"
            )


def locate_module(module: str) -> Path | None:
    """Finds a module's file or folder without importing it or its parents."""
    first, *rest = module.split(".")
    spec = PathFinder.find_spec(first, extended_import_path())
    if spec is None:
        return None
    folders = list(spec.submodule_search_locations or [])
    if not folders:
        return Path(spec.origin) if spec.origin and not rest else None
    path = Path(folders[0]).joinpath(*rest)
    if path.is_dir():
        return path
    file = path.with_name(f"{path.name}.py")
    return file if file.is_file() else None


def _with_file(path: Path, where: str) -> str:
    """Returns the location of a problem, prefixed with its file exactly once."""
    named, colon, line = where.partition(":")
    if named in (display_path(path), path.name):
        return f"{path}{colon}{line}"
    return where if str(path) in where else f"{path}: {where}"
