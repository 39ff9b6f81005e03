"""Imports a user's Python file or module, and reports errors in it with their line.

A project's folders come last on the import path, and only once code of the project is imported.
Otherwise a review would run a file of the project that is called like a library.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from signoff.core.errors import InvalidWorkflow, Problem, SignoffError

_OURS = str(Path(__file__).parents[1])
_IMPORTLIB = str(Path(importlib.__file__).parent)


_project_folders: list[str] = []
"""Where code of projects is imported from, once any is; the first has precedence."""

_loose_folders: set[str] = set()
"""Folders of workflow files that are not in a package; modules next to them are imported too."""


def make_importable(folders: Iterable[Path]) -> None:
    """Names the folders that code of a project is imported from; the first has precedence."""
    for folder in map(str, reversed(list(folders))):
        if folder not in sys.path and folder not in _project_folders:
            _project_folders.insert(0, folder)


def extend_import_path(module: str = "") -> None:
    """Lets code of projects be imported, after everything that is installed.

    To be called where a definition or a setting names such code, right before it is imported. A
    module of signoff itself needs no project.
    """
    if not module.startswith("signoff."):
        sys.path[:] = extended_import_path()


def extended_import_path() -> list[str]:
    """Returns where the code of projects and all other code is searched."""
    return [each for each in sys.path if each not in _project_folders] + _project_folders


def _search_first(folder: Path) -> None:
    """Lets imports find the modules of an importable folder first.

    A process may load workflows from several folders, and two of them may have a `helpers.py`.
    Python would give the second workflow the helpers of the first.
    """
    if str(folder) in _project_folders:
        _project_folders.remove(str(folder))
        _project_folders.insert(0, str(folder))
    extend_import_path()
    others = _loose_folders - {str(folder)}
    _loose_folders.add(str(folder))
    for path in folder.iterdir() if others else ():
        if path.suffix != ".py" and not (path / "__init__.py").is_file():
            continue
        file = Path(getattr(sys.modules.get(path.stem), "__file__", None) or "")
        source = file.parent if file.name == "__init__.py" else file
        if str(source.parent) in others:
            for each in [each for each in sys.modules if f"{each}.".startswith(f"{path.stem}.")]:
                del sys.modules[each]


def import_named(name: str) -> ModuleType:
    """Imports `package.module`; raises `ModuleNotFoundError` only if that itself is missing."""
    extend_import_path(name)
    with reported_errors(name, module=name):
        return importlib.import_module(name)


@contextmanager
def reported_errors(name: str, module: str = "") -> Iterator[None]:
    """Turns whatever a user's code raises into an `InvalidWorkflow` with its line.

    Only if `module` itself, or a package it is in, does not exist, `ModuleNotFoundError` is raised.
    """
    try:
        yield
    except InvalidWorkflow as error:
        raise with_locations(error) from error
    except SignoffError:
        raise
    except (Exception, SystemExit) as error:  # a user's module may raise anything at all
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and f"{module}.".startswith(f"{missing}."):
            raise
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        problem = Problem(error_location(error) or name, what.splitlines()[0])
        raise InvalidWorkflow(name, [problem]) from error


def import_file(path: Path) -> ModuleType:
    """Imports a Python file from its folder; a file inside a package gets its real name."""
    packages = _packages(path)
    if packages:
        make_importable([path.parents[len(packages)]])
        return import_named(module_name(path))
    make_importable([path.parent])
    if _loose_name(path) not in sys.modules:
        _search_first(path.parent)
    return import_loose(path)


def module_name(path: Path) -> str:
    """Returns the name under which a file is imported."""
    if packages := _packages(path):
        return ".".join([*packages, *([] if path.stem == "__init__" else [path.stem])])
    return _loose_name(path)


def _loose_name(path: Path) -> str:
    # A unique name: a file called `select.py` must not replace the standard library's module.
    return f"signoff_target_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"


def _packages(path: Path) -> list[str]:
    found: list[str] = []
    folder = path.parent
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        found.insert(0, folder.name)
        folder = folder.parent
    return found


def import_loose(path: Path) -> ModuleType:
    """Imports a Python file, or a package by its `__init__.py`, under a name of its own."""
    name = _loose_name(path)
    if name in sys.modules:
        return sys.modules[name]
    extend_import_path()
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InvalidWorkflow(path.name, [Problem(str(path), "is not a Python file")])
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with reported_errors(path.name):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def error_location(error: BaseException) -> str:
    """Returns `file:line` of the user's code that raised an error; empty if there is none."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not f.filename.startswith(("<", _OURS, _IMPORTLIB))]
    return f"{own[-1].filename}:{own[-1].lineno}" if own else ""


def describe_failure(error: BaseException) -> str:
    """Returns on one line what a user's code raised, and where."""
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return ": ".join(filter(None, [error_location(error), what.splitlines()[0]]))


def with_locations(error: InvalidWorkflow) -> InvalidWorkflow:
    """Returns the same problems, each with the line of its step or of the workflow."""
    location = error_location(error)
    if not location:
        return error
    file = location.rpartition(":")[0]
    lines = _step_lines(Path(file))
    problems = []
    for problem in error.problems:
        line = lines.get(problem.step)
        where = f"{file}:{line}" if line else location
        problems.append(replace(problem, where=f"{where}: {problem.where}"))
    return InvalidWorkflow(error.name, problems)


def _step_lines(file: Path) -> dict[str, int]:
    """Returns the line of each `StepDef` with a literal id; the first one of an id counts."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return {}
    found: dict[str, int] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Name(id="StepDef") | ast.Attribute(attr="StepDef"),
                args=[ast.Constant(value=str(step)), *_],
            ):
                found.setdefault(step, node.lineno)
    return found
