"""Imports a user's Python file or module and says in one line what went wrong in it."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from signoff.app.source_location import located, place_of
from signoff.errors import InvalidWorkflow, Problem, SignoffError


def make_importable(folders: Iterable[Path]) -> None:
    """Lets modules in these folders be imported, the first folder first."""
    for folder in reversed(list(folders)):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))


def import_named(name: str) -> ModuleType:
    """Imports `package.module`; `ModuleNotFoundError` only when it is not there itself."""
    try:
        return importlib.import_module(name)
    except InvalidWorkflow as error:
        raise located(error) from error
    except SignoffError:
        raise
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise
        raise _broken(name, error) from error
    except (Exception, SystemExit) as error:  # a user's module may raise anything at all
        raise _broken(name, error) from error


def import_file(path: Path) -> ModuleType:
    """Imports a Python file from where it stands; one inside a package under its real name."""
    packages = _packages(path)
    if packages:
        make_importable([path.parents[len(packages)]])
        parts = [*packages, *([] if path.stem == "__init__" else [path.stem])]
        return import_named(".".join(parts))
    make_importable([path.parent])
    return _import_loose(path)


def _packages(path: Path) -> list[str]:
    found: list[str] = []
    folder = path.parent
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        found.insert(0, folder.name)
        folder = folder.parent
    return found


def _import_loose(path: Path) -> ModuleType:
    # A name of its own: a file called `select.py` must not stand in for the library's.
    name = f"signoff_target_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InvalidWorkflow(path.name, [Problem(str(path), "is not a Python file")])
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except InvalidWorkflow as error:
        del sys.modules[name]
        raise located(error) from error
    except SignoffError:
        del sys.modules[name]
        raise
    except (Exception, SystemExit) as error:  # a user's file may raise anything at all
        del sys.modules[name]
        raise _broken(path.name, error) from error
    return module


def _broken(name: str, error: BaseException) -> InvalidWorkflow:
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return InvalidWorkflow(name, [Problem(place_of(error) or name, what.splitlines()[0])])
