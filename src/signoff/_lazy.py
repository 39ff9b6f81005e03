"""Loads a package's public names when they are first used."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pkgutil import get_data
from typing import Any

LazyNames = tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]
"""A package's `__all__`, `__getattr__` and `__dir__`."""


def declared_names(package: str) -> LazyNames:
    """Returns the same for the names that a package imports as themselves for type checkers.

    These imports are the only declaration: `if TYPE_CHECKING: from home import Name as Name`.
    """
    source = get_data(package, "__init__.py")
    homes: dict[str, str] = {}
    for node in ast.walk(ast.parse(source or b"")):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [each.name for each in node.names if each.asname == each.name]
            homes[node.module] = " ".join([homes.get(node.module, ""), *names])
    return exported_names(package, homes)


def exported_names(package: str, homes: Mapping[str, str], *own: str) -> LazyNames:
    """Returns a package's `__all__`, `__getattr__` and `__dir__`.

    `homes` maps modules to the names that they define, separated by spaces; `own` are the names
    that the package defines itself.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}
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
