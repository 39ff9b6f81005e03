import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "signoff"

SURFACES = ("cli", "testing")
WORDING = "app/next_commands.py"
COMMANDS = "commands"
"""The module or package in which a notation keeps the commands that it adds to the command line."""
VENDORS = ("agents/", "flows/files/git.py", "guarded_db/postgres_", "_extras.py")
"""Modules that call other programs, whose options they have to name."""

COMMAND = re.compile(
    r"\bsignoff (?:answer|approve|cancel|config|db|demo|doctor|graph|inbox|init|logs|models|next"
    r"|pair|policy|profile|reject|resume|run|runs|show|skill|store|submit|validate)\b"
)
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")

MODULES = sorted(
    path
    for path in SOURCE.rglob("*.py")
    if path.relative_to(SOURCE).parts[0] not in SURFACES
    and path.relative_to(SOURCE).as_posix() != WORDING
    and COMMANDS not in (path.stem, path.parent.name)
)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_below_the_command_line_names_no_command_or_option(path: Path) -> None:
    """A page or a REST client cannot type: remedies are values that each surface words."""
    vendor = path.relative_to(SOURCE).as_posix().startswith(VENDORS)
    found = [
        f"line {line}: {text!r}"
        for line, text in literals(ast.parse(path.read_bytes()))
        if COMMAND.search(text) or (OPTION.search(text) and not vendor)
    ]

    assert found == []


def test_a_command_or_option_is_found() -> None:
    """A rule that never matches would pass for every tree."""
    tree = ast.parse(
        '"""Docstrings may say `signoff run --json`."""\n'
        'why = f"resume it: signoff resume {name}"\n'
        'how = "add --limit usd=5"\n'
        'fine = "a---b and signoff itself"\n'
    )

    matches = [line for line, text in literals(tree) if COMMAND.search(text) or OPTION.search(text)]

    assert sorted(matches) == [2, 3]


def literals(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields the string literals that can become output: docstrings and declared flags cannot."""
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "").endswith("Option"):
            # A notation declares the flags that the command line offers for it.
            skipped |= {id(argument) for argument in node.args}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in skipped
        ):
            yield node.lineno, node.value
