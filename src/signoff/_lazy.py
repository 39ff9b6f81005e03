"""Loads a package's public names when they are first used."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any


def exported_names(
    package: str, *own: str, homes: Mapping[str, str] | None = None
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Returns a package's `__all__`, `__getattr__` and `__dir__`.

    The public names are those that the package imports for type checkers, so that they are listed
    once, and `own`, which it defines itself. `homes` has other modules to load some names from.
    """
    home_of = {**dict(_reexports(inspect.getsource(sys.modules[package]))), **(homes or {})}
    public = sorted([*home_of, *own])

    def load(name: str) -> Any:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home), name)
        # From now on the name is found without calling this function.
        setattr(sys.modules[package], name, value)
        return value

    return public, load, lambda: public


def _reexports(source: str) -> Iterator[tuple[str, str]]:
    """Yields each name that is imported as itself below `if TYPE_CHECKING`, with its module."""
    blocks = [each for each in ast.parse(source).body if isinstance(each, ast.If)]
    for statement in (each for block in blocks for each in block.body):
        if isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                if alias.asname == alias.name:
                    yield alias.name, str(statement.module)
