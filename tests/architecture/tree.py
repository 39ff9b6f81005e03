"""The package as syntax trees, parsed once for all tests that look at it."""

import ast
import gc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "signoff"


@dataclass(frozen=True)
class Module:
    """One file of a package."""

    name: str
    """Its dotted name; a package goes by the name of its folder."""
    path: str
    text: str
    is_package: bool

    @property
    def syntax(self) -> ast.Module:
        """Its syntax tree."""
        return parsed(self.text)

    @property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of its syntax tree."""
        return _nodes(self.text)

    @property
    def package(self) -> str:
        """What its relative imports start from."""
        return self.name if self.is_package else self.name.rpartition(".")[0]


@cache
def parsed(text: str) -> ast.Module:
    """Returns the syntax tree of a text; equal texts share one."""
    return ast.parse(text)


@cache
def _nodes(text: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(parsed(text)))


@cache
def product() -> tuple[Module, ...]:
    """Returns every module of the product."""
    modules = tuple(modules_in(PACKAGE))
    # All nodes are kept, so the garbage collector would only look at them again and again.
    gc.disable()
    for module in modules:
        _nodes(module.text)
    gc.freeze()
    gc.enable()
    return modules


def modules_in(package: Path) -> Iterator[Module]:
    """Returns every module below a package's folder."""
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package.parent)
        parts = inside.with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        yield Module(name, inside.as_posix(), path.read_text(encoding="utf-8"), is_package)


def names_in(modules: Iterable[Module], name_of: Callable[[ast.AST], str]) -> Iterator[str]:
    """Yields file, line and name of each node that `name_of` finds a name in, except docstrings."""
    for module in modules:
        docstrings = {id(node.value) for node in module.nodes if isinstance(node, ast.Expr)}
        for node in module.nodes:
            name = "" if id(node) in docstrings else name_of(node)
            if name:
                yield f"{module.path}:{getattr(node, 'lineno', 0)}: {name}"


def planted(**files: str) -> list[Module]:
    """Returns modules of an invented package; `a__b` is the file `signoff/a/b.py`."""
    names = {name.replace("__", "/"): text for name, text in files.items()}
    return [
        Module(f"signoff.{name.replace('/', '.')}", f"signoff/{name}.py", text, is_package=False)
        for name, text in names.items()
    ]
