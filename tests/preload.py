"""Imports all of signoff, so that processes forked from this one need not do it again.

The product imports its parts when they are first used, which takes most of the time of a short
process. A server that forks many such processes imports this module first.
"""

import pkgutil
from contextlib import suppress
from importlib import import_module
from types import ModuleType

import signoff

LEFT_OUT = ("signoff.__main__", "signoff.mcp", "signoff.testing", "signoff.web")
"""Few processes need them; a server and its libraries take longer to import than all the rest."""


def _import_modules(package: ModuleType) -> None:
    # Not `walk_packages`, which also imports the packages whose modules are left out.
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if module.name in LEFT_OUT:
            continue
        # A module whose optional dependency is not installed is not used by the tests either.
        with suppress(ImportError):
            imported = import_module(module.name)
            if module.ispkg:
                _import_modules(imported)


_import_modules(signoff)
for name in (
    "concurrent.futures.thread",
    "jsonschema",
    "psycopg",
    "rapidfuzz",
    "sqlglot.dialects.sqlite",
):
    import_module(name)
