"""Proves that work was done: conditions are evaluated, never taken on trust.

A step without a database is checked by the engine, as the steps of every workflow are. Here are
the items of a fan-out, and steps with a database: their statements are applied and their
conditions checked inside one transaction, which is kept only when all of them hold.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from signoff.contracts.context import StepContext
from signoff.contracts.database import Proof, StepDatabase, StepKey, Tables
from signoff.contracts.expressions import Expression
from signoff.contracts.model import Check, Condition, ConditionalNext, WorkflowStep
from signoff.core.frozen import freeze
from signoff.error_text import describe_error
from signoff.errors import NotSerialisable, StepFailed

CONDITION_SECONDS = 10.0
"""How long one condition may take."""


def prove(
    ctx: StepContext,
    database: StepDatabase,
    conditions: Sequence[Condition],
    done: Mapping[str, Any],
    key: StepKey,
) -> Mapping[str, Any]:
    """Commits a step's statements if its conditions hold; else raises `StepFailed` with all.

    Returns what was proved. That is what an earlier attempt gave, where one that was thought
    lost has reached the database after all: the work there is its work.
    """

    def holds_in(check: Check | str, view: Tables) -> bool:
        return holds(check, ctx.seen_by(view, done["result"], done["hint"]))

    proofs: list[Proof] = [
        (each.name, partial(holds_in, each.check), each.words) for each in conditions
    ]
    note = json.dumps(done)
    stored = database.commit(proofs, key, note)
    return done if stored == note else dict(json.loads(stored))


async def problems_of(conditions: Sequence[Condition], seen: StepContext) -> list[str]:
    """Returns everything that does not hold, where there is no database."""
    problems: list[str] = []
    for each in conditions:
        try:
            held = await evaluated(each.check, seen)
        except Exception as error:  # noqa: BLE001  # whatever a condition raises, it does not hold
            problems.append(f"{each.name}: raised {describe_error(error)}")
        else:
            problems += [] if held else [each.words]
    return problems


def clear_next(step: WorkflowStep) -> tuple[Condition, ...]:
    """Returns a condition that the result decides what follows, where that depends on it."""
    branch = step.next
    # Of items, only what they gave together leads anywhere; a gate leads where a person says.
    if not isinstance(branch, ConditionalNext) or step.parallel_key or step.human_gate:
        return ()

    def can_be_decided(ctx: StepContext) -> bool:
        holds(branch.condition, ctx)
        return True

    return (Condition("next", can_be_decided),)


def storable(done: dict[str, Any]) -> dict[str, Any]:
    """Returns what a step gave if the journal can keep it; raises `StepFailed` if not."""
    try:
        freeze(done)
    except NotSerialisable as error:
        raise StepFailed(f"what the step gave cannot be kept: {error}") from error
    return done


def is_quick(check: Check | str) -> bool:
    """Tells whether evaluating a condition ends at once: it is a text without nested loops."""
    return isinstance(check, str) and Expression(check).is_quick


async def evaluated(check: Check | str, seen: StepContext) -> bool:
    """Evaluates one condition; on a thread if it may take its time, so that other runs go on."""
    if is_quick(check):
        return holds(check, seen)
    return await asyncio.to_thread(decided, check, seen)


def decided(check: Check | str, ctx: StepContext, seconds: float = CONDITION_SECONDS) -> bool:
    """Evaluates one condition, not for ever; raises what it raises, or `StepFailed`."""
    ends: list[bool | BaseException] = []

    def evaluate() -> None:
        try:
            ends.append(holds(check, ctx))
        except BaseException as error:  # noqa: BLE001  # raised again below, on the caller's thread
            ends.append(error)

    # A thread that may be left behind: nothing else can be left when it hangs.
    thread = threading.Thread(target=evaluate, name="signoff-condition", daemon=True)
    thread.start()
    thread.join(seconds)
    if not ends:
        raise StepFailed(f"a condition did not come to an end within {seconds:g} seconds")
    if isinstance(ends[0], BaseException):
        raise ends[0]
    return ends[0]


def holds(check: Check | str, ctx: StepContext) -> bool:
    """Evaluates one condition in a context that is ready; raises what it raises."""
    if isinstance(check, str):
        expression = Expression(check)
        return expression.holds(ctx.values(expression.names))
    held = check(ctx)
    if inspect.isawaitable(held):
        held = asyncio.run(_awaited(held))
    if not isinstance(held, bool):
        raise TypeError(f"returned {held!r:.80} instead of True or False")
    return held


async def _awaited(work: Any) -> Any:
    return await work
