"""Looks through partials, decorators and callable objects at the function an author wrote."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, get_type_hints

EMPTY: Any = inspect.Parameter.empty


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
