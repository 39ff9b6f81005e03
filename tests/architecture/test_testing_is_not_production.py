import ast
from collections.abc import Iterable

from tests.architecture.tree import Module, planted, product
from tests.tables import table

TESTING = "signoff.testing"


def test_production_code_does_not_use_the_doubles() -> None:
    """Changing a double for a test would change what users run."""
    assert users_of_testing(product()) == set()


@table(
    "text",
    [
        "from signoff.testing import ScriptedAgent",
        "import signoff.testing.scripted",
        "from signoff import testing",
        "def f():\n    from signoff.testing.scripted import ScriptedAgent",
        "KINDS = {'scripted': 'signoff.testing.script:FileScript'}",
    ],
)
def test_a_use_of_the_doubles_is_found(text: str) -> None:
    """By import or by name: a string that is loaded later is an import too."""
    assert users_of_testing(planted(app__a=text)) == {"signoff.app.a"}


def test_a_mention_in_a_docstring_is_not_a_use() -> None:
    """Docstrings tell authors of stores which tests there are."""
    assert users_of_testing(planted(core__a='"""`signoff.testing` has one."""')) == set()


def users_of_testing(modules: Iterable[Module]) -> set[str]:
    return {
        module.name
        for module in modules
        if not f"{module.name}.".startswith(f"{TESTING}.") and _uses(module)
    }


def _uses(module: Module) -> bool:
    for node in module.nodes:
        match node:
            case ast.Import(names=aliases) if any(_is_testing(each.name) for each in aliases):
                return True
            case ast.ImportFrom(module=str(source), names=aliases):
                if _is_testing(source) or any(
                    _is_testing(f"{source}.{each.name}") for each in aliases
                ):
                    return True
            case ast.Constant(value=str(text)) if _is_testing(text.partition(":")[0]):
                return True
    return False


def _is_testing(name: str) -> bool:
    return f"{name}.".startswith(f"{TESTING}.")
