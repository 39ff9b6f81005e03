"""Finds the modules of the project that conditions use, for the digest of their definition.

A worker that can edit files could otherwise weaken a helper of a condition, and the run would
continue as if nothing had changed. The module of a condition counts, with all that it imports and
these import: each as a whole, without comments and formatting. Installed packages, the standard
library and signoff itself are left out: a new release of a library is no change of the definition.
"""

from __future__ import annotations

import ast
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Any

from signoff.core.code import function_of, parse_module
from signoff.core.digest import text_digest

_OTHERS = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
_SIGNOFF = Path(__file__).parents[1]


def describe_modules(functions: Iterable[Callable[..., Any]]) -> list[list[str]]:
    """Returns the name and the digest of each module of the project that functions use."""
    found: dict[Path, str] = {}
    for function in functions:
        names = getattr(function_of(function), "__globals__", {})
        file, package = names.get("__file__"), names.get("__package__") or ""
        if file:
            path = Path(file)
            # What a module of a package imports is found next to the package.
            folder = path.parents[len(package.split(".")) if package else 0]
            _add(path, package, folder, found)
    # Not by their paths: a project may be moved.
    return sorted([path.name, digest] for path, digest in found.items())


def _add(path: Path, package: str, folder: Path, found: dict[Path, str]) -> None:
    # Modules may import each other in a circle; each is read once.
    if path in found or not _is_of_project(path):
        return
    try:
        tree = parse_module(path.read_text("utf-8"))
    except (OSError, SyntaxError, ValueError):
        return
    # The parsed form is digested, so that comments and formatting may change under a run.
    found[path] = text_digest(ast.unparse(tree))
    for name in _imported(tree, package):
        for module, its_package in _files_of(name, folder):
            _add(module, its_package, folder, found)


def _is_of_project(path: Path) -> bool:
    if path.suffix != ".py" or not {"site-packages", "dist-packages"}.isdisjoint(path.parts):
        return False
    return not any(path.is_relative_to(other) for other in (_SIGNOFF, *_OTHERS))


def _imported(tree: ast.Module, package: str) -> Iterator[str]:
    """Yields the names of everything that a module imports, some of which are no modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = "." * node.level + (node.module or "")
            try:
                module = resolve_name(origin, package)
            except ImportError:
                continue
            yield from (f"{module}.{alias.name}" for alias in node.names)


def _files_of(name: str, folder: Path) -> Iterator[tuple[Path, str]]:
    """Yields the file of a module and of each package that it is in, with their packages.

    A file of the folder comes first: the process may know another project's module by the name.
    """
    parts = name.split(".")
    roots = [folder, *_root_of(parts[0])]
    for length in range(1, len(parts) + 1):
        module = ".".join(parts[:length])
        for path in (root.joinpath(*parts[:length]) for root in roots):
            if (path / "__init__.py").is_file():
                yield path / "__init__.py", module
                break
            if path.with_name(f"{path.name}.py").is_file():
                yield path.with_name(f"{path.name}.py"), module.rpartition(".")[0]
                break


def _root_of(name: str) -> Iterator[Path]:
    """Yields the folder in which Python finds a module, without importing it."""
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return
    if spec is not None and spec.has_location and spec.origin:
        path = Path(spec.origin)
        yield path.parents[1] if spec.submodule_search_locations else path.parent
