import ast
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.tree import parsed
from tests.tables import table

CORE = Path(__file__).parents[2] / "src" / "signoff" / "core"

# Modules that compute and do nothing else. `datetime` and `inspect` are here for their types;
# the calls by which they would read the clock are refused below.
PURE_STDLIB = frozenset(
    """
    __future__ abc ast base64 binascii bisect builtins cmath collections copy dataclasses datetime
    decimal difflib enum fractions functools graphlib hashlib heapq html inspect itertools json
    keyword linecache math numbers operator
    re reprlib statistics string struct textwrap types typing
    unicodedata
    """.split()
)
OWN = ("signoff.core", "signoff.core.errors", "signoff.core.remedies")
COMPUTES_ONLY = {"codec.py": {"orjson"}}

CLOCK_READS = frozenset(
    "datetime.now datetime.utcnow datetime.today date.today "
    "datetime.datetime.now datetime.datetime.utcnow datetime.date.today".split()
)
OUTSIDE_CALLS = frozenset({"open", "print", "input", "breakpoint", "__import__"})

MODULES = sorted(CORE.rglob("*.py"))


def test_the_core_has_modules() -> None:
    """With an empty list every test below would pass without looking at anything."""
    assert MODULES


@table("path", {str(path.relative_to(CORE)): path for path in MODULES})
def test_a_core_module_imports_only_pure_modules(path: Path) -> None:
    """A run is rebuilt by replaying its journal; anything impure here would rebuild another run."""
    allowed = COMPUTES_ONLY.get(path.name, set())
    impure = [name for name in imported_modules(path) if not is_pure(name) and name not in allowed]

    assert impure == []


@table("path", {str(path.relative_to(CORE)): path for path in MODULES})
def test_a_core_module_neither_waits_nor_does_io(path: Path) -> None:
    """A decision that awaits, prints or reads a clock cannot be repeated on replay."""
    offences = list(impure_code(path))

    assert offences == []


def is_pure(module: str) -> bool:
    return module.split(".")[0] in PURE_STDLIB or any(
        module == own or module.startswith(f"{own}.") for own in OWN
    )


def imported_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(parse(path)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), level=0, names=names) if module == "signoff":
                yield from (f"signoff.{alias.name}" for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module
            case ast.ImportFrom(level=level) if level > 1:
                yield f"{'.' * level}{node.module or ''}"


def impure_code(path: Path) -> Iterator[str]:
    for node in ast.walk(parse(path)):
        match node:
            case ast.AsyncFunctionDef(name=name):
                yield f"line {node.lineno}: async def {name}"
            case ast.Call(func=ast.Name(id=name)) if name in OUTSIDE_CALLS:
                yield f"line {node.lineno}: {name}()"
            case ast.Call(func=ast.Attribute() as called) if ast.unparse(called) in CLOCK_READS:
                yield f"line {node.lineno}: {ast.unparse(called)}()"


def parse(path: Path) -> ast.Module:
    return parsed(path.read_text(encoding="utf-8"))
