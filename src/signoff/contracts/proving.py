"""Checks that work was done: conditions are evaluated, never taken on trust.

The engine checks a step without a database, as it does in every workflow. This module checks
the items of a fan-out, and steps with a database: their statements are applied and their
conditions checked inside one transaction, which is committed only if all of them hold.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from signoff.contracts.blame import BadExpression
from signoff.contracts.context import StepContext
from signoff.contracts.database import Proof, StepDatabase, StepKey, Tables
from signoff.contracts.expressions import parse_expression
from signoff.contracts.model import Check, Condition, ConditionalNext, WorkflowStep
from signoff.contracts.results import AmbiguousName
from signoff.core.frozen import freeze
from signoff.error_text import unmet
from signoff.errors import NotSerialisable, StepFailed
from signoff.runtime.handlers import on_thread

CONDITION_SECONDS = 10.0
"""How long one condition may take."""


def prove(
    ctx: StepContext,
    database: StepDatabase,
    conditions: Sequence[Condition],
    output: Mapping[str, Any],
    key: StepKey,
    confirmed: Sequence[Mapping[str, Any]] = (),
    is_wanted: Callable[[], bool] = lambda: True,
    branch: StepBranch | None = None,
) -> Mapping[str, Any] | None:
    """Commits a step's statements if its conditions hold; raises `StepFailed` with all problems.

    Returns the output that belongs to the committed work. If an earlier attempt that seemed
    lost was committed after all, that is the output of that attempt. None means that nothing was
    committed, because a human has to confirm a change that is not in `confirmed`. `is_wanted` is
    asked right before the commit. Committed work cannot be tried again, so the branch after it must
    be decidable, and is decided here.
    """

    about = ctx.with_result(output["result"], output["hint"])

    def holds_in(check: Check | str, where: str, view: Tables) -> bool:
        return holds(check, about.seen_by(view), where)

    proofs: list[Proof] = [
        (each.name, partial(holds_in, each.check, each.where), each.message, is_quick(each.check))
        for each in conditions
    ]
    if branch is not None:
        decided = partial(_decide, branch, holds_in)
        message = undecided(ctx.step)
        proofs.append(("next", decided, message, is_quick(branch.next.condition)))
    proofs.append(("in time", lambda _view: is_wanted(), "it took too long", True))
    note = json.dumps(output)
    stored = database.commit(proofs, key, note, confirmed)
    if stored is None:
        return None
    return output if stored == note else dict(json.loads(stored))


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


@dataclass
class StepBranch:
    """The branch after a step, which is decided where its work is proved."""

    next: ConditionalNext
    held: bool | None = None
    """Whether its condition held; None if it has not been evaluated."""

    @classmethod
    def after(cls, step: WorkflowStep) -> StepBranch | None:
        """Returns the branch after a step; None if there is none, or it depends on more."""
        # A branch after items looks at all of them, and after a gate a human decides.
        if not isinstance(step.next, ConditionalNext) or step.parallel_key or step.human_gate:
            return None
        return cls(step.next)


def _decide(
    branch: StepBranch, holds_in: Callable[[Check | str, str, Tables], bool], view: Tables
) -> bool:
    branch.held = holds_in(branch.next.condition, branch.next.where, view)
    return True


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
    if not isinstance(value, bool):
        raise TypeError(f"returned {value!r:.80} instead of True or False")
    return value


async def _await(value: Any) -> Any:
    return await value
