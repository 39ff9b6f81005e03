"""Imports all of signoff, so that processes forked from this one need not do it again.

The product imports its parts when they are first used, which takes most of the time of a short
process. A server that forks many such processes imports this module first.
"""

import pkgutil
from contextlib import suppress
from importlib import import_module
from types import ModuleType

from pydantic import BaseModel

import signoff
from signoff.documents.entry_points import entry_points
from signoff.review.pure.record import Record, _adapter
from tests.huge_pages import use_huge_pages

LEFT_OUT = (
    "signoff.__main__",
    "signoff.app.workers.temporal",
    "signoff.app.workers.temporal_workflow",
    "signoff.surfaces.mcp",
    "signoff.testing",
    "signoff.surfaces.web",
)
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


def _build_models(model: type[BaseModel]) -> None:
    """Builds the validators of all models, which pydantic does when each is first used."""
    for each in model.__subclasses__():
        if each.__module__.startswith("signoff."):
            each.model_rebuild()
        _build_models(each)


def _build_records(record: type[Record]) -> None:
    """Builds the validators of all records, which signoff does when each is first read."""
    for each in record.__subclasses__():
        _adapter(each)  # type: ignore[arg-type]  # mypy takes the class for unhashable
        _build_records(each)


_import_modules(signoff)
_build_models(BaseModel)
_build_records(Record)
entry_points("agents")
for name in (
    "concurrent.futures.thread",
    "jsonschema",
    "psutil",
    "psycopg",
    "rapidfuzz",
    "sqlglot.dialects.sqlite",
):
    import_module(name)
use_huge_pages()
