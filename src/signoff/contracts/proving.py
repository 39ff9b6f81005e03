"""Proves that a step was done: its conditions are evaluated here, never taken on trust.

Where the workflow has a database, the step's statements are applied and its conditions
checked inside one transaction, which is kept only when all of them hold.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from signoff.contracts.context import StepContext
from signoff.contracts.database import Proof
from signoff.contracts.db.postconditions import CONDITION_SECONDS, failures
from signoff.contracts.db.staging import Marker
from signoff.contracts.db.view import ReadOnlyView
from signoff.contracts.expressions import Expression
from signoff.contracts.model import Check, Condition
from signoff.errors import StepFailed


def prove(
    ctx: StepContext,
    conditions: Sequence[Condition],
    done: Mapping[str, Any],
    marker: Marker,
) -> None:
    """Checks a step's postconditions; raises `StepFailed` with everything that does not hold."""
    proofs = [
        Proof(each.name, partial(_holds, each.check, ctx, done), each.words) for each in conditions
    ]
    if ctx.database is not None:
        ctx.database.commit(proofs, marker, _kept(done))
        return
    wrong = failures(
        [proof.condition() for proof in proofs],
        ReadOnlyView(_nothing_to_read),
        seconds=CONDITION_SECONDS,
        interrupt=lambda: None,
    )
    if wrong:
        raise StepFailed("; ".join(wrong))


def holds(check: Check | str, ctx: StepContext) -> bool:
    """Evaluates one condition in a context that is ready; raises what it raises."""
    if isinstance(check, str):
        return Expression(check).holds(ctx.values())
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


def _kept(done: Mapping[str, Any]) -> str:
    try:
        return json.dumps(done, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise StepFailed(f"what the step gave cannot be kept as JSON: {error}") from error


async def _awaited(work: Any) -> Any:
    return await work


def _nothing_to_read(_sql: str, _params: Any) -> tuple[Any, ...]:
    raise StepFailed("this workflow names no database")
