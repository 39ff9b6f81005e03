"""Finds the code of the project that a condition calls, for the digest of its definition.

A worker that can edit files could otherwise weaken a helper of a condition, and the run would
continue as if nothing had changed. The code is found in the source, by name: functions, classes
and constants that a condition uses, those that these use, and so on, across the modules of the
project. Installed packages, the standard library and signoff itself are left out, and so is what
no name leads to, such as methods of objects that a condition gets at run time.
"""

from __future__ import annotations

import ast
import linecache
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.util import find_spec, resolve_name
from pathlib import Path
from types import FunctionType
from typing import Any

from signoff.core.code import function_of, parse_module, source_of
from signoff.core.digest import text_digest

_SIGNOFF = str(Path(__file__).parents[1])
_INSTALLED = frozenset({"site-packages", "dist-packages"})

_Import = ast.Import | ast.ImportFrom


def describe_called(function: Callable[..., Any]) -> list[list[str]]:
    """Returns the name and the digest of everything of the project that a function calls."""
    called = _Called()
    for each in _functions(function, set()):
        called.visit_function(each)
    return sorted([name, text_digest(code)] for name, code in called.code.items())


def _functions(value: Any, seen: set[int]) -> Iterator[FunctionType]:
    """Yields a function, and those that it was built with: arguments, defaults and closures."""
    if id(value) in seen or not callable(value):
        return
    seen.add(id(value))
    if isinstance(value, partial):
        for each in (value.func, *value.args, *value.keywords.values()):
            yield from _functions(each, seen)
        return
    function = function_of(value)
    if not isinstance(function, FunctionType):
        return
    yield function
    for cell in function.__closure__ or ():
        try:
            yield from _functions(cell.cell_contents, seen)
        except ValueError:
            continue  # the variable is not assigned yet
    for each in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield from _functions(each, seen)


@dataclass(frozen=True)
class _ModuleSource:
    """The source of a module of the project."""

    name: str
    package: str
    file: str
    names: dict[str, list[ast.stmt]]
    """The statements that assign each name at the top of the module."""
    stars: tuple[str, ...]
    """The modules whose names it imports all."""


class _Called:
    """Follows names through the modules of a project."""

    def __init__(self) -> None:
        self.code: dict[str, str] = {}
        """Code by the name of its file and its own."""
        self._seen: set[tuple[str, str]] = set()
        self._entered: set[tuple[str, frozenset[str]]] = set()
        self._modules: dict[tuple[Path, str], _ModuleSource | None] = {}

    def visit_function(self, function: FunctionType) -> None:
        """Follows everything that a function uses."""
        values = function.__globals__
        file = values.get("__file__") or ""
        module = _read(str(values.get("__name__")), str(values.get("__package__") or ""), str(file))
        if module is None:
            return
        node = source_of(function)
        # The other methods of its class may be called through `self`.
        owner = function.__qualname__.partition(".")[0]
        if any(isinstance(each, ast.ClassDef) for each in module.names.get(owner, ())):
            self._visit(module, owner)
        if node is not None:
            self._follow(module, node)
            return
        used = frozenset(_names_in(function.__code__))
        for name in used:
            self._visit(module, name, used)

    def _visit(
        self, module: _ModuleSource, name: str, attributes: frozenset[str] = frozenset()
    ) -> None:
        """Adds what has this name in a module, and follows it."""
        statements = module.names.get(name)
        if statements is None:
            for star in module.stars:
                self._enter(module, star, {name})
            return
        imports = [each for each in statements if isinstance(each, _Import)]
        for imported in imports:
            self._import(module, imported, name, attributes)
        key = (module.file, name)
        if len(imports) == len(statements) or key in self._seen:
            return
        self._seen.add(key)
        own = [each for each in statements if not isinstance(each, _Import)]
        self.code[f"{Path(module.file).name}:{name}"] = "\n".join(map(ast.unparse, own))
        for each in own:
            self._follow(module, each)

    def _follow(self, module: _ModuleSource, node: ast.AST) -> None:
        nodes = list(ast.walk(node))
        attributes = frozenset(each.attr for each in nodes if isinstance(each, ast.Attribute))
        for name in {each.id for each in nodes if isinstance(each, ast.Name)}:
            self._visit(module, name, attributes)
        for each in nodes:
            if isinstance(each, _Import):
                self._import(module, each, None, attributes)

    def _import(
        self, module: _ModuleSource, node: _Import, name: str | None, attributes: frozenset[str]
    ) -> None:
        """Follows an import of one name, or of all that it imports."""
        for alias in node.names:
            if name not in (None, alias.asname or alias.name.partition(".")[0]):
                continue
            if isinstance(node, ast.Import):
                # `import a.b` makes `a` a name, and `a.b` can be reached from there.
                self._enter(module, alias.name, attributes)
                continue
            relative = "." * node.level + (node.module or "")
            origin = resolve_name(relative, module.package) if node.level else relative
            self._enter(module, origin, {alias.name})
            self._enter(module, f"{origin}.{alias.name}", attributes)

    def _enter(self, importer: _ModuleSource, name: str, wanted: set[str] | frozenset[str]) -> None:
        """Follows names that are wanted from another module, if that is part of the project."""
        folder = Path(importer.file).parent
        for _ in importer.package.split(".") if importer.package else ():
            folder = folder.parent
        key = (folder, name)
        if key not in self._modules:
            self._modules[key] = _find(name, folder)
        module = self._modules[key]
        # Modules that import each other would be followed forever otherwise.
        if module is None or (module.file, frozenset(wanted)) in self._entered:
            return
        self._entered.add((module.file, frozenset(wanted)))
        for each in wanted:
            self._visit(module, each, frozenset(wanted))


def _find(name: str, folder: Path) -> _ModuleSource | None:
    """Returns a module of the project by its name, as modules of a folder import it.

    It need not be imported yet. A file of the folder comes first: the process may know a module
    of another project by the same name.
    """
    path = folder.joinpath(*name.split("."))
    if (path / "__init__.py").is_file():
        return _read(name, name, str(path / "__init__.py"))
    if path.with_suffix(".py").is_file():
        return _read(name, name.rpartition(".")[0], str(path.with_suffix(".py")))
    known = sys.modules.get(name)
    if known is not None:
        file = getattr(known, "__file__", None) or ""
        return _read(name, str(getattr(known, "__package__", None) or ""), file)
    try:
        spec = find_spec(name)
    except (ImportError, AttributeError, ValueError):
        return None
    if spec is None or not spec.has_location:
        return None
    return _read(name, spec.parent or "", spec.origin or "")


def _read(name: str, package: str, file: str) -> _ModuleSource | None:
    if not file.endswith(".py") or not _is_of_project(file):
        return None
    linecache.checkcache(file)
    source = "".join(linecache.getlines(file))
    try:
        names, stars = _index(source)
    except (SyntaxError, ValueError):
        return None
    origins = [resolve_name(star, package) if star.startswith(".") else star for star in stars]
    return _ModuleSource(name, package, file, names, tuple(origins))


def _is_of_project(file: str) -> bool:
    parts = Path(file).parts
    inside = (_SIGNOFF, *_standard_library())
    return _INSTALLED.isdisjoint(parts) and not any(file.startswith(f"{each}/") for each in inside)


@lru_cache(maxsize=1)
def _standard_library() -> tuple[str, ...]:
    return tuple(sysconfig.get_path(each) for each in ("stdlib", "platstdlib"))


@lru_cache(maxsize=64)
def _index(source: str) -> tuple[dict[str, list[ast.stmt]], tuple[str, ...]]:
    """Returns the statements at the top of a module by the names they assign, and star imports."""
    names: dict[str, list[ast.stmt]] = {}
    stars: list[str] = []
    for statement in _top_level(parse_module(source).body):
        for name in _assigned(statement):
            names.setdefault(name, []).append(statement)
        if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
            stars.append("." * statement.level + (statement.module or ""))
    return names, tuple(stars)


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yields the statements of a module, and those inside `if`, `try` and `with`."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.Try | ast.With):
            for field in ("body", "orelse", "finalbody"):
                yield from _top_level(getattr(statement, field, []))


def _assigned(statement: ast.stmt) -> set[str]:
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return {statement.name}
        case ast.Import() | ast.ImportFrom():
            return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            return {
                node.id
                for node in ast.walk(statement)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
    return set()


def _names_in(code: Any) -> Iterator[str]:
    """Yields the names of functions without source, and of those inside them."""
    yield from code.co_names
    for constant in code.co_consts:
        if hasattr(constant, "co_names"):
            yield from _names_in(constant)
