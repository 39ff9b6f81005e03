"""Proves that a step was done: its conditions are evaluated here, never taken on trust.

Where the workflow has a database, the step's statements are applied and its conditions
checked inside one transaction, which is kept only when all of them hold.
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
from signoff.contracts.database import Proof
from signoff.contracts.db.postconditions import CONDITION_SECONDS, Postcondition, failures, found
from signoff.contracts.db.staging import Marker
from signoff.contracts.db.view import ReadOnlyView
from signoff.contracts.expressions import Expression
from signoff.contracts.model import Check, Condition, ConditionalNext, WorkflowStep
from signoff.core.frozen import freeze
from signoff.errors import NotSerialisable, StepFailed


def prove(
    ctx: StepContext,
    conditions: Sequence[Condition],
    done: Mapping[str, Any],
    marker: Marker,
) -> Mapping[str, Any]:
    """Checks a step's postconditions; raises `StepFailed` with everything that does not hold.

    Returns what was proved. That is what an earlier attempt gave, where one that was thought
    lost has reached the database after all: the work there is its work.
    """
    proofs = [
        Proof(each.name, partial(_holds, each.check, ctx, done), each.words) for each in conditions
    ]
    if ctx.database is not None:
        keep = json.dumps(done)
        kept = ctx.database.commit(proofs, marker, keep)
        return done if kept == keep else dict(json.loads(kept))
    _complain(
        failures(
            [proof.condition() for proof in proofs],
            ReadOnlyView(_nothing_to_read),
            seconds=CONDITION_SECONDS,
            interrupt=lambda: None,
        )
    )
    return done


def prove_at_once(
    ctx: StepContext, conditions: Sequence[Condition], done: Mapping[str, Any]
) -> None:
    """Checks conditions that cannot hang, where there is no database; raises as `prove` does."""
    nowhere = ReadOnlyView(_nothing_to_read)
    seen = ctx.seen_by(None, done["result"], done["hint"])
    wrong: list[str] = []
    for each in conditions:
        evaluate = partial(_with_result, each.check, seen)
        wrong.extend(found(Postcondition(each.name, evaluate, each.words), nowhere))
    _complain(wrong)


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


def _complain(wrong: Sequence[str]) -> None:
    if wrong:
        raise StepFailed("; ".join(wrong))


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


def _holds(
    check: Check | str, ctx: StepContext, done: Mapping[str, Any], view: ReadOnlyView
) -> bool:
    seen = view if ctx.database is not None else None
    return holds(check, ctx.seen_by(seen, done["result"], done["hint"]))


def _with_result(check: Check | str, seen: StepContext, _view: ReadOnlyView) -> bool:
    return holds(check, seen)


async def _awaited(work: Any) -> Any:
    return await work


def _nothing_to_read(_sql: str, _params: Any) -> tuple[Any, ...]:
    raise StepFailed("this workflow names no database")
