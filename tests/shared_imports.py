"""Lets each worker of pytest-xdist compile a part of the tests for all of them.

Every worker imports every test file, in the same order and at the same time. In a fresh checkout
each would compile all of them, which takes longer than all the rest of the collection. A worker
that begins with files of its own finds the others compiled when it comes to them.
"""

import sys
from pathlib import Path

import pytest
from _pytest.pathlib import ImportMode, import_path


def import_share(config: pytest.Config, number: int, count: int) -> None:
    """Imports every test file whose turn it is, as the collection does later."""
    for file in _test_files(config)[number::count]:
        before = set(sys.modules)
        try:
            import_path(
                file,
                mode=ImportMode.importlib,
                root=config.rootpath,
                consider_namespace_packages=config.getini("consider_namespace_packages"),
            )
        except (Exception, pytest.skip.Exception):  # noqa: BLE001 (the collection reports it)
            # The module is half initialized, and the collection must not take it for a whole one.
            for name in set(sys.modules) - before:
                if getattr(sys.modules[name], "__file__", None) == str(file):
                    del sys.modules[name]


def _test_files(config: pytest.Config) -> list[Path]:
    """Lists the test files in the folders that are collected."""
    folders = [config.invocation_params.dir / argument for argument in config.args]
    return sorted(file for folder in folders for file in folder.rglob("test_*.py"))
