# Postponed annotations are the point: handlers in this file are read as their authors wrote them.
from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import pytest

from signoff.core.args import Arg, Param, bind, read_params
from signoff.core.code import EMPTY, function_of, resolve

if TYPE_CHECKING:
    from decimal import Decimal as ForCheckersOnly

TIMES = Arg(min=1, max=9)


def plain(ctx: ForCheckersOnly, times: Annotated[int, TIMES] = 3) -> tuple[str, int]:
    return str(ctx), times


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


@dataclass
class Reviewer:
    role: str

    def __call__(self, ctx: ForCheckersOnly, times: Annotated[int, TIMES] = 3) -> None: ...

    def method(self, ctx: ForCheckersOnly, times: Annotated[int, TIMES] = 3) -> None: ...

    @classmethod
    def of_class(cls, ctx: ForCheckersOnly, times: Annotated[int, TIMES] = 3) -> None: ...

    @staticmethod
    def static(ctx: ForCheckersOnly, times: Annotated[int, TIMES] = 3) -> None: ...


def with_role(ctx: Any, role: str, times: Annotated[int, TIMES] = 3) -> None: ...
def role_first(role: str, ctx: Any, times: Annotated[int, TIMES] = 3) -> None: ...


HANDLERS: dict[str, Callable[..., Any]] = {
    "function": plain,
    "decorated": logged(plain),
    "partial": functools.partial(plain),
    "partial with a keyword": functools.partial(with_role, role="critic"),
    "partial with a position": functools.partial(role_first, "critic"),
    "partial of a method": functools.partial(Reviewer("critic").method),
    "method": Reviewer("critic").method,
    "class method": Reviewer.of_class,
    "static method": Reviewer.static,
    "callable object": Reviewer("critic"),
    "decorated method": logged(Reviewer("critic").method),
}


@pytest.mark.parametrize("handler", HANDLERS.values(), ids=HANDLERS)
def test_any_callable_says_what_it_takes(handler: Callable[..., Any]) -> None:
    """Whatever shape a handler has, its parameters are converted and range-checked."""
    params = read_params(handler)
    values, problems = bind(params, {"times": "4"})

    assert params == {"times": Param("times", int, TIMES, 3)}
    assert (values, problems) == ({"times": 4}, [])


def test_what_a_partial_has_filled_in_is_no_longer_asked_for() -> None:
    """Two steps built from one function with different roles must each keep their own."""
    critic = functools.partial(with_role, role="critic")
    judge = functools.partial(functools.partial(with_role, role="critic"), role="judge", times=1)

    assert list(read_params(critic)) == ["times"]
    assert list(read_params(judge)) == []


def test_a_name_only_type_checkers_know_spoils_no_other_annotation() -> None:
    """`if TYPE_CHECKING: from signoff import StepContext` is common; ranges must survive it."""

    def handler(
        ctx: ForCheckersOnly, price: ForCheckersOnly, times: Annotated[int, TIMES]
    ) -> ForCheckersOnly:
        return price * times

    params = read_params(handler)

    assert params["price"].unread == "ForCheckersOnly"
    assert params["times"] == Param("times", int, TIMES)
    assert resolve(handler, "ForCheckersOnly") == (EMPTY, "ForCheckersOnly")


def test_an_annotation_is_resolved_in_the_module_of_its_handler() -> None:
    """A handler that promises something else than a tuple is found before it runs."""
    assert resolve(plain, "Annotated[int, TIMES]") == (Annotated[int, TIMES], "")
    assert resolve(logged(plain), "tuple[str, int]") == (tuple[str, int], "")
    assert resolve(plain, EMPTY) == (EMPTY, "")


def test_the_function_an_author_wrote_is_found_under_its_wrappings() -> None:
    """It is what the digest of a definition covers."""
    assert function_of(functools.partial(logged(plain))) is plain
    assert function_of(Reviewer("a")) is Reviewer.__call__
    assert function_of(Reviewer("a").method) is Reviewer.method
    assert function_of(len) is len
    assert function_of(Reviewer) is Reviewer
