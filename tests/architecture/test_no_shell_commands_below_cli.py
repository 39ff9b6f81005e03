import ast
import re
from collections.abc import Iterable, Iterator

from tests.architecture.tree import Module, planted, product

SURFACES = ("surfaces/cli/", "surfaces/notations/", "testing/")
WORDING = ("app/runs/next_commands.py", "skills/step_text.py")
"""Modules that word commands for others: remedies, and the pages of skills (their protocol)."""
VENDORS = ("agents/", "review/flow/files/git.py", "runtime/extras.py")
"""Modules that call other programs, whose options they have to name."""

COMMAND = re.compile(
    r"\bsignoff (?:answer|approve|cancel|config|db|demo|doctor|graph|inbox|init|logs|models|next"
    r"|pair|policy|profile|reject|resume|run|runs|show|skill|store|submit|validate)\b"
)
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")


def test_no_module_below_the_command_line_names_a_command_or_option() -> None:
    """A page or a REST client cannot type: remedies are values that each surface words."""
    assert list(commands_and_options(product())) == []


def test_a_command_or_option_is_found() -> None:
    """A rule that never matches would pass for every tree."""
    text = (
        '"""Docstrings may say `signoff run --json`."""\n'
        'why = f"resume it: signoff resume {name}"\n'
        'how = "add --limit usd=5"\n'
        'fine = "a---b and signoff itself"\n'
        'flag = NotationOption("--owner")\n'
    )
    modules = planted(
        app__a=text, agents__b=text, surfaces__cli__c=text, surfaces__notations__d=text
    )

    assert sorted(commands_and_options(modules)) == [
        "signoff/agents/b.py:2: resume it: signoff resume ",
        "signoff/app/a.py:2: resume it: signoff resume ",
        "signoff/app/a.py:3: add --limit usd=5",
    ]


def commands_and_options(modules: Iterable[Module]) -> Iterator[str]:
    for module in modules:
        path = module.path.removeprefix("signoff/")
        if path.startswith(SURFACES) or path in WORDING:
            continue
        vendor = path.startswith(VENDORS)
        for line, text in literals(module):
            if COMMAND.search(text) or (OPTION.search(text) and not vendor):
                yield f"{module.path}:{line}: {text}"


def literals(module: Module) -> Iterator[tuple[int, str]]:
    """Yields the string literals that can become output: docstrings and declared flags cannot."""
    skipped = {id(node.value) for node in module.nodes if isinstance(node, ast.Expr)}
    for node in module.nodes:
        if isinstance(node, ast.Call) and getattr(node.func, "id", "").endswith("Option"):
            # A notation declares the flags that the command line offers for it.
            skipped |= {id(argument) for argument in node.args}
    for node in module.nodes:
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in skipped
        ):
            yield node.lineno, node.value
