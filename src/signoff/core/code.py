"""Reads the functions of authors: their annotations, and their code for the definition's digest.

The code is described as data that changes only when its meaning does. Source is compared without
comments, formatting and line numbers. The values a function was built with (a partial's
arguments, the plain values a factory closed over) belong to it as well: `reviewer("strict")` and
`reviewer("lenient")` share every line and do different things.

Journals store digests of this data. A change here that alters the data for an unchanged function
makes every run in progress refuse to resume until its user adopts the definition.
"""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import lru_cache, partial
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any, get_type_hints

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

EMPTY: Any = inspect.Parameter.empty

_PLAIN = (str, int, float, bool, type(None))


def function_of(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function an author wrote, from under partials, decorators and objects."""
    while isinstance(handler, partial):
        handler = handler.func
    if not inspect.isroutine(handler) and not isinstance(handler, type):
        handler = type(handler).__call__
    function = inspect.unwrap(handler)
    return function.__func__ if inspect.ismethod(function) else function


def resolve(handler: Callable[..., Any], annotation: Any) -> tuple[Any, str]:
    """Returns what an annotation of a handler means, or EMPTY and the text that has no meaning.

    Annotations are resolved one by one, so that a name that exists only for type checkers does
    not spoil the others.
    """
    if annotation is EMPTY:
        return EMPTY, ""
    names = getattr(function_of(handler), "__globals__", {})
    holder = SimpleNamespace(__annotations__={"it": annotation})
    try:
        return get_type_hints(holder, globalns=names, include_extras=True)["it"], ""
    except (NameError, AttributeError, TypeError, SyntaxError):
        return EMPTY, str(annotation)


def name_of(function: Callable[..., Any]) -> str:
    """Returns the name of a callable in its source."""
    source_function = function_of(function)
    return str(getattr(source_function, "__qualname__", type(source_function).__qualname__))


def describe_code(function: Callable[..., Any], enclosing: frozenset[int] = frozenset()) -> Any:
    """Returns a callable's code as plain data; a compiled handler brings its own `definition`.

    `enclosing` are the ids of functions whose description this one is part of: functions that
    close over each other would otherwise be described forever.
    """
    own = getattr(function, "definition", None)
    if own is not None:
        return own
    if isinstance(function, partial):
        return {
            "partial": describe_code(function.func, enclosing),
            "args": [_value(a, enclosing) for a in function.args],
            "keywords": {k: _value(v, enclosing) for k, v in function.keywords.items()},
        }
    source_function = function_of(function)
    if not isinstance(source_function, FunctionType) or id(source_function) in enclosing:
        return {"name": name_of(function)}
    enclosing |= {id(source_function)}
    node = source_of(source_function)
    keyword_only = (source_function.__kwdefaults__ or {}).values()
    return {
        "name": name_of(function),
        "code": _unparse(node) if node else _bytecode(source_function.__code__),
        # The keys are part of stored digests.
        "made_with": [_value(v, enclosing) for v in _closed_over(source_function, node)],
        "defaults": [
            _value(v, enclosing) for v in (*(source_function.__defaults__ or ()), *keyword_only)
        ],
        "of": [_value(v, enclosing) for v in _frozen_fields(function)],
    }


def _value(value: Any, enclosing: frozenset[int]) -> Any:
    """Describes a value that a function was built with; of a mutable object, only its type."""
    if isinstance(value, _PLAIN):
        return value if type(value) in _PLAIN else str(value)
    if isinstance(value, tuple):
        return [_value(v, enclosing) for v in value]
    if callable(value) and not isinstance(value, type):
        return describe_code(value, enclosing)
    kind = value if isinstance(value, type) else type(value)
    return {"type": kind.__qualname__}


def _closed_over(function: FunctionType, node: Definition | None) -> Iterator[Any]:
    """Yields the values of a function's closure, without variables that it changes itself."""
    changing = _changing(node) if node else ()
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield None if name in changing else cell.cell_contents
        except ValueError:
            yield None  # the variable is assigned further down in the factory, after this call


def _frozen_fields(function: Callable[..., Any]) -> Iterator[Any]:
    """Yields the fields of a callable object, or of a method's object, if they cannot change."""
    owner: Any = getattr(function, "__self__", function)
    settings = getattr(type(owner), "__dataclass_params__", None)
    if settings is not None and settings.frozen:
        yield from (getattr(owner, f.name) for f in fields(owner))


def source_of(function: FunctionType) -> Definition | None:
    """Finds a function in its module's source; None if it cannot be identified for certain."""
    code = function.__code__
    try:
        linecache.checkcache(code.co_filename)
        lines = linecache.getlines(code.co_filename, function.__globals__)
        here = _definitions("".join(lines)).get(code.co_firstlineno, ())
    except (OSError, TypeError, SyntaxError, ValueError, IndexError):
        # Typed at a prompt, compiled from elsewhere, or changed on disk since it was loaded.
        return None
    named = [node for node in here if getattr(node, "name", "<lambda>") == code.co_name]
    if len(named) == 1:
        return named[0]
    # Several lambdas share the line, so the columns decide. Code without columns (Python has an
    # option to leave them out) matches none of them, because a guess could be the wrong one.
    positions = [p for p in code.co_positions() if None not in p and p[2:] != (0, 0)]
    matches = [node for node in named if positions and _contains(node, positions)]
    return matches[-1] if matches else None


def constant_reads(function: Callable[..., Any], attribute: str) -> tuple[str, ...]:
    """Returns the constant keys that a function reads from a mapping, an attribute of its argument.

    These are `ctx.attribute["key"]`, `ctx.attribute.get("key")`, and the same with a variable that
    `ctx.attribute` was assigned to.
    """
    source_function = function_of(function)
    if not isinstance(source_function, FunctionType):
        return ()
    # Most functions read none, and finding the source of one takes longer than everything else.
    if attribute not in source_function.__code__.co_names:
        return ()
    node = source_of(source_function)
    if node is None:
        return ()
    names = {
        target.id
        for each in ast.walk(node)
        if isinstance(each, ast.Assign) and _is_attribute(each.value, attribute)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    reads = (_constant_key(each, attribute, names) for each in ast.walk(node))
    return tuple(dict.fromkeys(key for key in reads if key))


def _constant_key(node: ast.AST, attribute: str, names: set[str]) -> str:
    match node:
        case ast.Subscript(value=owner, slice=ast.Constant(value=str(key))):
            pass
        case ast.Call(
            func=ast.Attribute(value=owner, attr="get"), args=[ast.Constant(value=str(key)), *_]
        ):
            pass
        case _:
            return ""
    is_alias = isinstance(owner, ast.Name) and owner.id in names
    return key if is_alias or _is_attribute(owner, attribute) else ""


def _is_attribute(node: ast.AST, attribute: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == attribute


@lru_cache(maxsize=16)
def parse_module(source: str) -> ast.Module:
    """Returns the syntax tree of a module."""
    try:
        return ast.parse(source)
    except SystemError:
        # Python before 3.11.5 fails if a finalizer happens to parse something else meanwhile.
        return ast.parse(source)


@lru_cache(maxsize=16)
def _definitions(module: str) -> dict[int, tuple[Definition, ...]]:
    """Returns every function of a module by the line it starts on, inner ones last."""
    found: dict[int, tuple[Definition, ...]] = {}
    for node in ast.walk(parse_module(module)):
        if isinstance(node, Definition):
            decorators = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(d.lineno for d in decorators)])
            found[first] = (*found.get(first, ()), node)
    return found


# A factory builds many functions from one definition, and a process many workflows from the same
# handlers, so the results are cached.


_unparse = lru_cache(maxsize=256)(ast.unparse)


@lru_cache(maxsize=256)
def _changing(node: Definition) -> frozenset[str]:
    """Returns the variables of outer functions that a function changes."""
    inner = (each.names for each in ast.walk(node) if isinstance(each, ast.Nonlocal))
    return frozenset(name for names in inner for name in names)


def _contains(node: Definition, positions: list[Any]) -> bool:
    """Tells whether all these positions are inside the body of a lambda."""
    body: Any = node.body
    begin = (body.lineno, body.col_offset)
    end = (body.end_lineno, body.end_col_offset)
    return all(begin <= (p[0], p[2]) and (p[1], p[3]) <= end for p in positions)


def _bytecode(code: CodeType) -> list[Any]:
    """Returns the code of a function that has no readable source."""
    constants = [_bytecode(c) if isinstance(c, CodeType) else _constant(c) for c in code.co_consts]
    return [code.co_code.hex(), list(code.co_names), constants]


def _constant(value: Any) -> str:
    # The order of a set of strings differs from process to process.
    return repr(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)
