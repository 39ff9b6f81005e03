"""Evaluates conditions: whether work was done is checked, never taken on trust.

The engine checks a step without a database, as it does in every workflow, and `step_transaction`
one that has a database.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from signoff.contracts.context import StepContext
from signoff.contracts.expressions import BadExpression, parse_expression
from signoff.contracts.model import Check, Condition
from signoff.contracts.results import AmbiguousName
from signoff.core.frozen import freeze
from signoff.error_text import unmet
from signoff.errors import NotSerialisable, StepFailed
from signoff.runtime.handlers import on_thread

CONDITION_SECONDS = 10.0
"""How long one condition may take."""


async def problems_of(conditions: Sequence[Condition], ctx: StepContext) -> list[str]:
    """Returns the messages of all conditions that do not hold, without a database."""
    problems: list[str] = []
    for condition in conditions:
        try:
            if not await evaluate(condition.check, ctx, condition.where):
                problems.append(condition.message)
        except Exception as error:  # noqa: BLE001  # whatever it raises, it does not hold
            problems.append(unmet(condition.name, condition.message, error))
    return problems


def undecided(step: str) -> str:
    """Returns what is wrong if the branch after a step cannot be decided."""
    return f"the branch after {step!r} cannot be decided"


def check_storable(output: dict[str, Any]) -> dict[str, Any]:
    """Returns a step's output if the journal can store it; raises `StepFailed` if not."""
    try:
        freeze(output)
    except NotSerialisable as error:
        raise StepFailed(f"the step's result cannot be stored: {error}") from error
    return output


def is_quick(check: Check | str) -> bool:
    """Whether a condition takes no noticeable time: it is an expression without loops."""
    return isinstance(check, str) and parse_expression(check).is_quick


async def evaluate(
    check: Check | str, ctx: StepContext, where: str = "", seconds: float = CONDITION_SECONDS
) -> bool:
    """Returns whether a condition holds; raises as `holds` does, or `StepFailed` after a while.

    A slow one runs in a thread, so that other runs continue meanwhile. The thread is abandoned
    if it takes too long: there is no other way to end a function that hangs.
    """
    if is_quick(check):
        return holds(check, ctx, where)
    async with time_limit(seconds, f"a condition took more than {seconds:g} seconds"):
        return await on_thread(partial(holds, check, ctx, where))


@asynccontextmanager
async def time_limit(seconds: float | None, message: str) -> AsyncIterator[None]:
    """Ends the block after some seconds and raises `StepFailed`; None sets no limit.

    A `TimeoutError` that the author's own code raises is passed on.
    """
    # The author's code may raise the same error as the limit does, so the limit is asked afterwards
    # whether it was its own.
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            yield
    except TimeoutError:
        if not deadline.expired():
            raise
        raise StepFailed(message) from None


def holds(check: Check | str, ctx: StepContext, where: str = "") -> bool:
    """Returns whether a condition holds in a context; raises what it raises.

    An author's error says `where` the condition is.
    """
    try:
        if isinstance(check, str):
            expression = parse_expression(check)
            return expression.holds(ctx.values(expression), ctx.checkpoint.own_results)
        return _called(check, ctx)
    except (AmbiguousName, BadExpression) as error:
        raise BadExpression(f"{where}: {error}" if where else str(error)) from error


def _called(check: Check, ctx: StepContext) -> bool:
    value = check(ctx)
    if inspect.isawaitable(value):
        # Functions run in a thread of their own, which has no event loop.
        value = asyncio.run(_await(value))
    # Not truthiness: a function that returns a row or a list by mistake would nearly always hold.
    if not isinstance(value, bool):
        raise TypeError(f"returned {value!r:.80} instead of True or False")
    return value


async def _await(value: Any) -> Any:
    return await value
