"""What a handler's signature says, read off any callable.

Functions, methods, `functools.partial` and callable objects are read alike. Annotations are
resolved one by one, so a name that exists for type checkers only spoils no other annotation.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, get_type_hints

EMPTY: Any = inspect.Parameter.empty

_CATCH_ALL = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_UNREADABLE = (NameError, AttributeError, TypeError, SyntaxError)


@dataclass(frozen=True)
class HandlerParam:
    """One parameter a handler takes besides its context."""

    name: str
    hint: Any
    """Its annotation, resolved; EMPTY when there is none or it cannot be resolved."""
    default: Any
    unread: str = ""
    """The annotation as written, when it names something that is not there at run time."""


def handler_params(handler: Callable[..., Any]) -> Iterator[HandlerParam]:
    """Yields what a handler takes by name; what a partial has filled in is no longer taken."""
    filled = handler.keywords if isinstance(handler, partial) else {}
    for parameter in list(inspect.signature(handler).parameters.values())[1:]:
        if parameter.kind in _CATCH_ALL or parameter.name in filled:
            continue
        try:
            hint, unread = _resolved(handler, parameter.annotation), ""
        except _UNREADABLE:
            hint, unread = EMPTY, str(parameter.annotation)
        yield HandlerParam(parameter.name, hint, parameter.default, unread)


def return_annotation(handler: Callable[..., Any]) -> Any:
    """Returns what a handler is annotated to return; EMPTY when it does not say."""
    try:
        return _resolved(handler, inspect.signature(handler).return_annotation)
    except _UNREADABLE:
        return EMPTY


def function_of(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function an author wrote, from under partials, decorators and objects."""
    while isinstance(handler, partial):
        handler = handler.func
    if not inspect.isroutine(handler) and not isinstance(handler, type):
        handler = type(handler).__call__
    function = inspect.unwrap(handler)
    return function.__func__ if inspect.ismethod(function) else function


def _resolved(handler: Callable[..., Any], annotation: Any) -> Any:
    if annotation is EMPTY:
        return EMPTY
    names = getattr(function_of(handler), "__globals__", {})
    holder = SimpleNamespace(__annotations__={"it": annotation})
    return get_type_hints(holder, globalns=names, include_extras=True)["it"]
