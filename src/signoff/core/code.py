"""The code of a handler or condition, as data that changes only when its meaning does.

Source is compared without comments, formatting and place. What a function was made with
(a partial's arguments, the plain values a factory closed over) belongs to it as well:
`reviewer("strict")` and `reviewer("lenient")` share every line and do not do the same.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import lru_cache, partial
from types import CodeType, FunctionType
from typing import Any

from signoff.core.signature import function_of

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_PLAIN = (str, int, float, bool, type(None))


def name_of(function: Callable[..., Any]) -> str:
    """Returns what a callable is called where it was written.

    A compiled handler whose class was renamed keeps the name its runs were recorded with.
    """
    recorded = getattr(function, "recorded_name", None)
    if recorded is not None:
        return str(recorded)
    written = function_of(function)
    return str(getattr(written, "__qualname__", type(written).__qualname__))


def describe_code(function: Callable[..., Any]) -> Any:
    """Returns a callable's code as plain data; a notation's compiled one says it itself."""
    return _describe(function, frozenset())


def _describe(function: Callable[..., Any], around: frozenset[int]) -> Any:
    own = getattr(function, "definition", None)
    if own is not None:
        return own
    if isinstance(function, partial):
        return {
            "partial": _describe(function.func, around),
            "args": [_value(a, around) for a in function.args],
            "keywords": {k: _value(v, around) for k, v in function.keywords.items()},
        }
    written = function_of(function)
    if not isinstance(written, FunctionType) or id(written) in around:
        return {"name": name_of(function)}
    around |= {id(written)}
    node = _definition(written)
    keyword_only = (written.__kwdefaults__ or {}).values()
    return {
        "name": name_of(function),
        "code": _unparse(node) if node else _bytecode(written.__code__),
        "made_with": [_value(v, around) for v in _closed_over(written, node)],
        "defaults": [_value(v, around) for v in (*(written.__defaults__ or ()), *keyword_only)],
        "of": [_value(v, around) for v in _frozen_fields(function)],
    }


def _value(value: Any, around: frozenset[int]) -> Any:
    """Describes what a function was made with; of an object that may change, only its type."""
    if isinstance(value, _PLAIN):
        return value if type(value) in _PLAIN else str(value)
    if isinstance(value, tuple):
        return [_value(v, around) for v in value]
    if callable(value) and not isinstance(value, type):
        return _describe(value, around)
    kind = value if isinstance(value, type) else type(value)
    return {"type": kind.__qualname__}


def _closed_over(function: FunctionType, node: Definition | None) -> Iterator[Any]:
    """Yields the values a function took along, but not a counter it keeps changing itself."""
    changing = _changing(node) if node else ()
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield None if name in changing else cell.cell_contents
        except ValueError:
            yield None  # defined further down than the function, and not yet there


def _frozen_fields(function: Callable[..., Any]) -> Iterator[Any]:
    """Yields what a callable object, or the object of a method, was made with for good."""
    owner: Any = getattr(function, "__self__", function)
    settings = getattr(type(owner), "__dataclass_params__", None)
    if settings is not None and settings.frozen:
        yield from (getattr(owner, f.name) for f in fields(owner))


def _definition(function: FunctionType) -> Definition | None:
    """Finds a function in its module's source; None when it cannot be told for sure."""
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
    # Several lambdas share the line. Where the code says nothing of its place, none is guessed.
    places = [p for p in code.co_positions() if None not in p and p[2:] != (0, 0)]
    holding = [node for node in named if places and _holds(node, places)]
    return holding[-1] if holding else None


@lru_cache(maxsize=16)
def _definitions(module: str) -> dict[int, tuple[Definition, ...]]:
    """Returns every function of a module by the line it starts on, inner ones last."""
    found: dict[int, tuple[Definition, ...]] = {}
    for node in ast.walk(ast.parse(module)):
        if isinstance(node, Definition):
            decorators = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(d.lineno for d in decorators)])
            found[first] = (*found.get(first, ()), node)
    return found


# A factory makes many functions of one definition, and a process many workflows of the same ones.


_unparse = lru_cache(maxsize=256)(ast.unparse)


@lru_cache(maxsize=256)
def _changing(node: Definition) -> frozenset[str]:
    """Returns the names of outer functions' that a function changes."""
    inner = (each.names for each in ast.walk(node) if isinstance(each, ast.Nonlocal))
    return frozenset(name for names in inner for name in names)


def _holds(node: Definition, places: list[Any]) -> bool:
    """Tells whether code from all these places lies within what a lambda does."""
    body: Any = node.body
    begin = (body.lineno, body.col_offset)
    end = (body.end_lineno, body.end_col_offset)
    return all(begin <= (p[0], p[2]) and (p[1], p[3]) <= end for p in places)


def _bytecode(code: CodeType) -> list[Any]:
    """Returns what a function does where there is no source to say it."""
    constants = [_bytecode(c) if isinstance(c, CodeType) else _constant(c) for c in code.co_consts]
    return [code.co_code.hex(), list(code.co_names), constants]


def _constant(value: Any) -> str:
    # The order of a set of strings differs from process to process.
    return repr(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)
