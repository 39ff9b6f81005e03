"""Imports all of signoff, so that processes forked from this one need not do it again.

The product imports its parts when they are first used, which takes most of the time of a short
process. A server that forks many such processes imports this module first.
"""

import pkgutil
from contextlib import suppress
from importlib import import_module

import signoff

LEFT_OUT = ("signoff.__main__", "signoff.testing.")

for module in pkgutil.walk_packages(signoff.__path__, "signoff."):
    if not module.name.startswith(LEFT_OUT):
        # A module whose optional dependency is not installed is not used by the tests either.
        with suppress(ImportError):
            import_module(module.name)

for name in ("concurrent.futures.thread", "jsonschema", "rapidfuzz", "sqlglot.dialects.sqlite"):
    import_module(name)
