"""Limits how much of the code is imports: what a tree cut too fine has most of."""

import ast
import io
import tokenize
from collections.abc import Iterable

from tests.architecture.tree import Module, planted, product

IMPORT_SHARE = 0.11
MODULES = 430

_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def test_imports_are_a_small_part_of_the_code() -> None:
    """A reader who needs ten files to follow one thing reads mostly how they are connected."""
    assert import_share(product()) <= IMPORT_SHARE


def test_the_tree_has_few_modules() -> None:
    """A file of 20 lines with one importer is part of its importer's topic."""
    assert len(product()) <= MODULES


def test_the_share_of_imports_is_counted_in_lines_of_code() -> None:
    """Comments, blank lines and docstrings are no code; names of a long import are."""
    text = (
        '"""Docs."""\n\n# Why.\nfrom a import (\n    b,\n    c,\n)\n\nx = 1\n"""A docstring."""\n'
    )

    assert import_share(planted(core__a=text)) == 4 / 5


def import_share(modules: Iterable[Module]) -> float:
    imports = code = 0
    for module in modules:
        imports += sum(
            _lines(node) for node in module.nodes if isinstance(node, ast.Import | ast.ImportFrom)
        )
        code += len(_code_lines(module))
    return imports / code


def _code_lines(module: Module) -> set[int]:
    """Returns the lines with code: those with a token that is not part of a docstring."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in module.nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def _lines(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1
