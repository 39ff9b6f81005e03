"""Loads a package's public names when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def exported_names(
    package: str, homes: Mapping[str, str], *own: str
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
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
