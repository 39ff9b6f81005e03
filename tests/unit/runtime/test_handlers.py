import functools
from typing import Any

import pytest

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.handlers import awaited, callees
from signoff.runtime.suspension import WaitingForPerson
from tests.unit.runtime.bench import Bench, one_step

OK = Outcome.OK
Work = tuple[Outcome, dict[str, Any]]


def plain(ctx: StepContext, greeting: str = "hi") -> Work:
    return OK, {"said": greeting}


async def asynchronous(ctx: StepContext, greeting: str = "hi") -> Work:
    return OK, {"said": greeting}


class Speaker:
    async def __call__(self, ctx: StepContext) -> Work:
        return OK, {"said": "object"}


class Methods:
    def method(self, ctx: StepContext) -> Work:
        return OK, {"said": "method"}

    @classmethod
    async def of_class(cls, ctx: StepContext) -> Work:
        return OK, {"said": "class"}


@functools.wraps(asynchronous)
def wrapped(*args: Any, **kwargs: Any) -> Any:
    return asynchronous(*args, **kwargs)


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (plain, "hi"),
        (asynchronous, "hi"),
        (functools.partial(plain, greeting="hello"), "hello"),
        (functools.partial(asynchronous, greeting="hello"), "hello"),
        (Speaker(), "object"),
        (Methods().method, "method"),
        (Methods.of_class, "class"),
        (wrapped, "hi"),
        (lambda _ctx: (OK, {"said": "lambda"}), "lambda"),
    ],
    ids=["plain", "async", "partial", "async partial", "object", "method", "class", "wrapped", "λ"],
)
async def test_a_handler_may_be_any_callable(bench: Bench, handler: Any, said: str) -> None:
    """People write functions, methods, partials and objects."""
    result = await bench.start(one_step(handler))

    assert result.state == {"said": said}


@pytest.mark.parametrize(
    ("handler", "is_plain"),
    [
        (plain, True),
        (asynchronous, False),
        (functools.partial(asynchronous, greeting="x"), False),
        (Speaker(), False),
        (wrapped, False),
        (Methods().method, True),
        (None, False),
    ],
    ids=["plain", "async", "partial", "object", "wrapped", "method", "none"],
)
def test_a_plain_function_is_told_from_an_async_one(handler: Any, is_plain: bool) -> None:
    """What a plain one does outside cannot be seen, so everything is saved before it."""
    workflow = Workflow("flow", StepDef("work", handler=handler, next={OK: None}))

    assert callees(workflow)["work"].plain is is_plain


async def test_a_value_that_takes_no_time_is_passed_on() -> None:
    """Plain handlers return at once."""
    assert await awaited(7) == 7


async def test_one_error_in_a_task_group_is_that_error() -> None:
    """`unhandled errors in a TaskGroup (1 sub-exception)` helps nobody."""
    error = ValueError("the real one")

    with pytest.raises(ValueError, match="the real one") as raised:
        await awaited(_raises(BaseExceptionGroup("group", [error])))

    assert raised.value is error


async def test_an_error_beside_a_suspension_is_what_counts() -> None:
    """A bug must not be hidden until somebody has answered."""
    group = BaseExceptionGroup("group", [WaitingForPerson(), ValueError("a bug")])

    with pytest.raises(ValueError, match="a bug"):
        await awaited(_raises(group))


async def test_several_errors_stay_together() -> None:
    """Choosing one would hide the others."""
    group = ExceptionGroup("group", [ValueError("one"), KeyError("two")])

    with pytest.raises(ExceptionGroup) as raised:
        await awaited(_raises(group))

    assert raised.value is group


async def _raises(error: BaseException) -> None:
    raise error
