"""The imports between the modules of a package, including imports inside functions."""

import ast
from collections.abc import Iterable, Iterator, Mapping

from tests.architecture.tree import Module

Graph = Mapping[str, set[str]]

_HOLDS_STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)


def import_graph(modules: Iterable[Module]) -> Graph:
    """Returns which modules each module imports; imports for types only are left out."""
    known = list(modules)
    names = {module.name for module in known}
    return {
        module.name: {
            found for target in _targets(module) if (found := _module(target, names)) is not None
        }
        - {module.name}
        for module in known
    }


def cycles(graph: Graph) -> list[list[str]]:
    """Returns the groups of modules that all import each other, directly or by others."""
    order: list[str] = []
    seen: set[str] = set()
    for start in graph:
        _finish(start, graph, seen, order)
    back: dict[str, set[str]] = {name: set() for name in graph}
    for name, targets in graph.items():
        for target in targets:
            back[target].add(name)
    found: list[list[str]] = []
    seen = set()
    for start in reversed(order):
        group: list[str] = []
        _finish(start, back, seen, group)
        if len(group) > 1:
            found.append(sorted(group))
    return found


def _finish(start: str, graph: Graph, seen: set[str], order: list[str]) -> None:
    """Adds every module that can be reached and is new, each after those it imports."""
    stack = [(start, False)]
    while stack:
        name, done = stack.pop()
        if done:
            order.append(name)
        elif name not in seen:
            seen.add(name)
            stack.append((name, True))
            stack.extend((target, False) for target in sorted(graph[name]))


def _targets(module: Module) -> Iterator[str]:
    for node in _run_time_statements(module.syntax):
        match node:
            case ast.Import(names=aliases):
                yield from (alias.name for alias in aliases)
            case ast.ImportFrom(module=source, names=aliases, level=level):
                base = _base(module, level)
                start = ".".join(part for part in (base, source) if part)
                yield from (f"{start}.{alias.name}" for alias in aliases)


def _run_time_statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yields all statements; expressions are left out, because they cannot import anything."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, ast.If) and _is_for_types(node.test):
            pending.extend(node.orelse)
        else:
            children = ast.iter_child_nodes(node)
            pending.extend(child for child in children if isinstance(child, _HOLDS_STATEMENTS))


def _is_for_types(test: ast.expr) -> bool:
    return getattr(test, "id", getattr(test, "attr", "")) == "TYPE_CHECKING"


def _base(module: Module, level: int) -> str:
    if level == 0:
        return ""
    return ".".join(module.package.split(".")[: len(module.package.split(".")) - level + 1])


def _module(target: str, names: set[str]) -> str | None:
    """Returns the module that an import of this name loads; it may name a class inside one."""
    while target and target not in names:
        target = target.rpartition(".")[0]
    return target or None
