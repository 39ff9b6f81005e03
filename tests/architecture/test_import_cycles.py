from tests.architecture.imports import cycles, import_graph
from tests.architecture.tree import planted, product
from tests.tables import table


def test_no_modules_import_each_other() -> None:
    """Modules in a cycle can only be read, tested and changed together.

    Imports inside functions count: they hide a cycle from Python, not from the reader.
    """
    assert cycles(import_graph(product())) == []


@table(
    "back",
    [
        "from signoff.core.a import A",
        "import signoff.core.a",
        "from signoff.core import a",
        "from . import a",
        "from .a import A",
        "def f():\n    from signoff.core.a import A",
    ],
)
def test_a_cycle_is_found(back: str) -> None:
    """In every form of import, and inside functions."""
    modules = planted(core__a="from signoff.core.b import B", core__b="import signoff.core.c")
    modules += planted(core__c=back, core__d="import signoff.core.a")

    assert cycles(import_graph(modules)) == [["signoff.core.a", "signoff.core.b", "signoff.core.c"]]


def test_an_import_for_types_makes_no_cycle() -> None:
    """It is gone when the program runs, and a port has to name what it is for."""
    modules = planted(
        core__a="from signoff.core.b import B",
        core__b="if TYPE_CHECKING:\n    from signoff.core.a import A",
    )

    assert cycles(import_graph(modules)) == []
