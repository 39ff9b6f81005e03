import asyncio
import functools
from typing import Any

import pytest

from signoff.core.context import StepContext
from signoff.core.outcome import Status
from signoff.core.requests import Question
from signoff.core.step import Condition, HandlerFunction, HandlerObject, StepDef
from signoff.runtime.handlers import awaited, bound_handler, broken_conditions
from signoff.runtime.suspension import WaitingForAnswer
from tests.unit.runtime.engine_fixture import OK, EngineFixture, Work, one_step


def plain(ctx: StepContext, greeting: str = "hi") -> Work:
    return OK, {"text": greeting}


async def asynchronous(ctx: StepContext, greeting: str = "hi") -> Work:
    return OK, {"text": greeting}


class Speaker:
    async def __call__(self, ctx: StepContext) -> Work:
        return OK, {"text": "object"}


class Methods:
    def method(self, ctx: StepContext) -> Work:
        return OK, {"text": "method"}

    @classmethod
    async def of_class(cls, ctx: StepContext) -> Work:
        return OK, {"text": "class"}


@functools.wraps(asynchronous)
def wrapped(*args: Any, **kwargs: Any) -> Any:
    return asynchronous(*args, **kwargs)


@pytest.mark.parametrize(
    ("handler", "text", "is_plain"),
    [
        (plain, "hi", True),
        (asynchronous, "hi", False),
        (functools.partial(plain, greeting="hello"), "hello", True),
        (functools.partial(asynchronous, greeting="hello"), "hello", False),
        (Speaker(), "object", False),
        (Methods().method, "method", True),
        (Methods.of_class, "class", False),
        (wrapped, "hi", False),
        (lambda _ctx: (OK, {"text": "lambda"}), "lambda", True),
    ],
    ids=["plain", "async", "partial", "async partial", "object", "method", "class", "wrapped", "λ"],
)
async def test_a_handler_may_be_any_callable(
    bench: EngineFixture, handler: Any, text: str, is_plain: bool
) -> None:
    """People write functions, methods, partials and objects."""
    # What a plain one does outside cannot be seen, so everything is saved before it.
    workflow = one_step(handler)
    assert bound_handler(workflow, workflow["work"], {}).plain is is_plain

    result = await bench.start(workflow)

    assert result.state == {"text": text}


async def test_one_error_in_a_task_group_is_that_error() -> None:
    """`unhandled errors in a TaskGroup (1 sub-exception)` does not name the cause."""
    error = ValueError("the real one")

    with pytest.raises(ValueError, match="the real one") as raised:
        await awaited(_raises(BaseExceptionGroup("group", [error])))

    assert raised.value is error


async def test_an_error_beside_a_suspension_is_what_counts() -> None:
    """A bug must not stay hidden until a human has answered."""
    group = BaseExceptionGroup("group", [WaitingForAnswer(), ValueError("a bug")])

    with pytest.raises(ValueError, match="a bug"):
        await awaited(_raises(group))


async def test_several_errors_stay_together() -> None:
    """Choosing one would hide the others."""
    group = ExceptionGroup("group", [ValueError("one"), KeyError("two")])

    with pytest.raises(ExceptionGroup) as raised:
        await awaited(_raises(group))

    assert raised.value is group


class Odd(BaseException):
    """What a library may raise to get past `except Exception`."""


class SpeechlessError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (SystemExit(0), "SystemExit: 0"),
        (Odd("past everybody"), "Odd: past everybody"),
        (asyncio.CancelledError("a task of its own"), "CancelledError: a task of its own"),
        (SpeechlessError(), "SpeechlessError: (its message cannot be read)"),
    ],
    ids=["exit", "odd", "cancelled", "speechless"],
)
async def test_whatever_a_handler_raises_is_its_failure(
    bench: EngineFixture, error: BaseException, text: str
) -> None:
    """`sys.exit(0)` in a handler would end the program with 0: `signoff run && deploy` deploys."""

    async def handler(_ctx: StepContext) -> Work:
        raise error

    def as_function(_ctx: StepContext) -> Work:
        raise error.with_traceback(None)

    result = await bench.start(one_step(handler))
    other = await bench.engine.start(one_step(as_function))

    assert (result.status, other.status) == (Status.FAILED, Status.FAILED)
    places = [each.__code__.co_firstlineno + 1 for each in (handler, as_function)]
    assert [result.reason, other.reason] == [
        f"the handler of step 'work' raised {text} (test_handlers.py:{line})" for line in places
    ]


async def test_a_condition_that_would_end_the_program_is_not_met(bench: EngineFixture) -> None:
    """A check that raises has not passed, and does not end the program."""

    def leave(_ctx: StepContext) -> bool:
        raise SystemExit(0)

    condition = Condition("leave", leave, "cannot tell")
    result = await bench.start(one_step(plain, preconditions=[condition]))

    assert result.status is not Status.COMPLETED
    assert "cannot tell (leave raised SystemExit: 0 (test_handlers.py:" in str(bench.events())


async def _raises(error: BaseException) -> None:
    raise error


async def test_a_false_condition_without_an_error_text_is_not_met() -> None:
    """A step must not count as done because its author left the text of a condition empty."""
    never = Condition("never", lambda _ctx: False, "")

    assert await broken_conditions([never], StepContext.__new__(StepContext)) == "never is not met"


class Relay(HandlerObject):
    """Asks an agent, and a human if the reply is a question, as a notation may do it."""

    agent = "claude"
    outcomes = (OK,)

    def function(self, step: StepDef) -> HandlerFunction:
        async def handler(ctx: StepContext) -> Work:
            reply = await ctx.ask(self.agent, step.instructions, key="relay")
            while reply.text.endswith("?"):
                answer = await ctx.wait(Question(reply.text))
                reply = await ctx.ask(self.agent, f"{step.title}: {answer.value}", key="relay")
            return OK, {step.id: reply.text}

        return handler

    def describe(self) -> Any:
        return ["relay", self.agent]


async def test_a_handler_object_supplies_the_function_that_is_called(bench: EngineFixture) -> None:
    """A notation relays questions without a special case in the engine, and pays once for each."""
    bench.agent.on("# Paint", "Which color?").on("Paint: red", "Painted.")
    flow = one_step(Relay(), title="Paint")

    waiting = await bench.start(flow)
    still_waiting = await bench.resume(flow)
    bench.answer("red")
    ended = await bench.resume(flow)

    assert (waiting.status, still_waiting.status) == (Status.WAITING, Status.WAITING)
    assert ended.state == {"work": "Painted."}
    assert len(bench.agent.prompts) == 2


def test_the_description_of_a_handler_object_is_part_of_the_digest() -> None:
    """A run must not continue with another agent or another question than it was started with."""

    class Other(Relay):
        def describe(self) -> Any:
            return ["relay", "other"]

    assert one_step(Relay()).digest == one_step(Relay()).digest
    assert one_step(Relay()).digest != one_step(Other()).digest
