"""Finds workflows that can be run by name.

Every Python file in the searched folders is parsed first, and only files that assign
`WORKFLOW` are imported, so a search does not run unrelated scripts. All files that cannot
be imported are reported together.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.machinery import PathFinder
from pathlib import Path

from signoff import plugins
from signoff.app.home import Home
from signoff.app.notations import compile_path
from signoff.core.workflow import Workflow
from signoff.documents.files import display_path
from signoff.documents.python_files import import_file, make_importable
from signoff.documents.regular_files import read_regular
from signoff.errors import InvalidWorkflow, Problem, SignoffError
from signoff.light_dataclass import light_dataclass
from signoff.notation import CompileContext

NAME = "WORKFLOW"
_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages"})


@light_dataclass(frozen=True)
class DiscoveredWorkflow:
    """A workflow and its file."""

    workflow: Workflow
    path: Path


@light_dataclass(frozen=True)
class Discovery:
    """All workflows that were found, and the problems of files that could not be read."""

    found: tuple[DiscoveredWorkflow, ...]
    problems: tuple[Problem, ...]

    @property
    def names(self) -> list[str]:
        """The names of all workflows."""
        return sorted({found.workflow.name for found in self.found})

    def matching(self, name: str) -> list[DiscoveredWorkflow]:
        """Returns all workflows of this name; more than one is an error."""
        return [found for found in self.found if found.workflow.name == name]


def discover(context: CompileContext, searched: Sequence[str] = ()) -> Discovery:
    """Searches the home's flows and the configured folders and modules."""
    # Options are for the one workflow that is run, not for all that are found.
    context = replace(context, options={}, check_only=True)
    make_importable([context.root])
    problems: list[Problem] = []
    files = _flow_files(Home(context.home).flows) if context.home is not None else []
    for source in searched:
        files.extend(_source_files(source, context.root, problems))
    found = []
    for path in dict.fromkeys(file.resolve() for file in files):
        workflow = _load(path, context, problems)
        if workflow is not None:
            found.append(DiscoveredWorkflow(workflow, path))
    problems.extend(_duplicates(found))
    return Discovery(tuple(found), tuple(problems))


def assigns_workflow(text: str) -> bool:
    """Tells whether a module assigns `WORKFLOW` at its top level; raises SyntaxError."""
    if NAME not in text:
        return False
    for node in ast.parse(text).body:
        match node:
            case ast.Assign(targets=targets):
                if any(isinstance(t, ast.Name) and t.id == NAME for t in targets):
                    return True
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()) if name == NAME:
                return True
    return False


def _flow_files(folder: Path) -> list[Path]:
    # Notations are loaded only if there is a folder to search.
    notations = plugins.notations() if folder.is_dir() else ()
    suffixes = {suffix for each in notations for suffix in each.suffixes}
    others = (path for path in sorted(folder.rglob("*")) if path.suffix in suffixes)
    return [*_python_files(folder), *others]


def _source_files(source: str, root: Path, problems: list[Problem]) -> list[Path]:
    file = root / Path(source).expanduser()
    path = file if file.exists() else _locate(source)
    if path is None:
        what = "is neither a folder nor a module"
        problems.append(Problem(f"workflows: {source}", what, f"searched in {root}"))
        return []
    return _python_files(path) if path.is_dir() else [path]


def _python_files(folder: Path) -> list[Path]:
    return [
        path
        for path in sorted(folder.rglob("*.py"))
        if not any(
            part in _SKIPPED_FOLDERS or part.startswith(".")
            for part in path.relative_to(folder).parts
        )
    ]


def _locate(module: str) -> Path | None:
    """Finds a module's file or folder without importing it or its parents."""
    first, *rest = module.split(".")
    spec = PathFinder.find_spec(first)
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


def _load(path: Path, context: CompileContext, problems: list[Problem]) -> Workflow | None:
    try:
        if path.suffix != ".py":
            return compile_path(path, context)
        if not assigns_workflow(read_regular(path, None, follow=True).decode()):
            return None
        value = getattr(import_file(path), NAME)
    except InvalidWorkflow as error:
        problems.extend(
            Problem(_with_file(path, p.where), p.what, p.remedy) for p in error.problems
        )
        return None
    except SyntaxError as error:
        problems.append(Problem(f"{path}:{error.lineno}", f"SyntaxError: {error.msg}"))
        return None
    except (OSError, UnicodeDecodeError, SignoffError) as error:
        problems.append(Problem(str(path), str(error)))
        return None
    if isinstance(value, Workflow):
        return value
    problems.append(Problem(str(path), f"{NAME} is {type(value).__name__}, not a Workflow"))
    return None


def _with_file(path: Path, where: str) -> str:
    """Returns the location of a problem, prefixed with its file exactly once."""
    named, colon, line = where.partition(":")
    if named in (display_path(path), path.name):
        return f"{path}{colon}{line}"
    return where if str(path) in where else f"{path}: {where}"


def _duplicates(found: Sequence[DiscoveredWorkflow]) -> Iterator[Problem]:
    by_name: dict[str, list[str]] = {}
    for each in found:
        by_name.setdefault(each.workflow.name, []).append(str(each.path))
    for name, paths in by_name.items():
        if len(paths) > 1:
            yield Problem(
                f"workflow {name!r}", f"is defined in {', '.join(paths)}", "give each its own name"
            )
