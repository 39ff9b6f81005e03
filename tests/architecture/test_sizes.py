"""Limits the size of modules and functions.

Complexity is the linter's: `max-complexity` in `pyproject.toml`.
"""

import ast
from collections.abc import Iterable, Iterator

from tests.architecture.tree import Module, planted, product

MODULE_LINES = 700
"""A module is a topic that is read from top to bottom; a file of 20 lines with one importer is part
of another topic."""

BODY_LINES = 50
"""Of a function, without its docstring."""


def test_no_module_is_too_long() -> None:
    """A module that is too long to understand is changed by trial and error."""
    assert list(long_modules(product())) == []


def test_no_function_is_too_long() -> None:
    """A function that does not fit on a screen is hard to read."""
    assert list(long_functions(product())) == []


def test_a_module_that_is_too_long_is_found() -> None:
    """A check that finds nothing would keep every file short."""
    modules = planted(core__long="x = 1\n" * 701, core__short="x = 1\n" * 700)

    assert list(long_modules(modules)) == ["signoff/core/long.py: 701 lines"]


def test_a_function_that_is_too_long_is_found_without_its_docstring() -> None:
    """A long explanation must not make a function too long."""
    words = '    """Does it."""\n'
    modules = planted(
        core__a="class A:\n    async def long(self):\n" + "        x = 1\n" * 51,
        core__b="def short():\n" + words + "    x = 1\n" * 50,
    )

    assert list(long_functions(modules)) == ["signoff/core/a.py: long has 51 lines"]


def long_modules(modules: Iterable[Module]) -> Iterator[str]:
    for module in modules:
        lines = len(module.text.splitlines())
        if lines > MODULE_LINES:
            yield f"{module.path}: {lines} lines"


def long_functions(modules: Iterable[Module]) -> Iterator[str]:
    for module in modules:
        for node in module.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = body_lines(node)
                if lines > BODY_LINES:
                    yield f"{module.path}: {node.name} has {lines} lines"


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = function.body[1:] if ast.get_docstring(function, clean=False) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
