"""Loads a package's public names when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def loader(package: str, homes: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Returns a module's `__getattr__` for names that are defined in other modules, its `homes`."""
    home_of = {name: home for home, names in homes.items() for name in names}

    def load(name: str) -> Any:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home), name)
        # From now on the name is found without calling this function.
        setattr(sys.modules[package], name, value)
        return value

    return load


def names_in(homes: Mapping[str, Sequence[str]]) -> list[str]:
    """Returns the names that are defined in other modules, sorted."""
    return sorted(name for names in homes.values() for name in names)


def exported_names(
    package: str, homes: Mapping[str, str]
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Returns a package's `__all__`, `__getattr__` and `__dir__`.

    `homes` maps modules to the names that they define, separated by spaces.
    """
    names = {home: text.split() for home, text in homes.items()}
    public = names_in(names)
    return public, loader(package, names), lambda: public
