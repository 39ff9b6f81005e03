"""Asks a human before a step deletes rows, or changes every row of a table.

The step's work is applied without a question if none of it needs one, which is the usual case.
Otherwise its rows are counted and recorded, and a human approves that number. When the work is
applied, the rows are counted again, and another number refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from signoff.contracts.database import StepDatabase
from signoff.core.context import Failure, StepContext
from signoff.core.effects import ProductPrompt
from signoff.core.requests import Approval
from signoff.errors import StepFailed
from signoff.runtime.handlers import on_thread

Change = Mapping[str, Any]
"""A statement that has to be confirmed: statement, values, table, rows, others."""

_KEY = "changes"


def was_asked(ctx: StepContext) -> bool:
    """Whether changes of this attempt have been measured before, in order to ask about them.

    Then the work is never applied without the answer, even if other rows match by now and it
    would need no confirmation any more.
    """
    return ctx.port is not None and ctx.port.was_requested(ctx, _KEY)


async def confirm_changes(ctx: StepContext, database: StepDatabase) -> Sequence[Change]:
    """Returns the changes that a human has confirmed; raises `StepFailed` if they are rejected."""
    changes = await _measure(ctx, database)
    if changes:
        await _ask(ctx, changes)
    return changes


async def _measure(ctx: StepContext, database: StepDatabase) -> Sequence[Change]:
    """Returns the changes that need a confirmation; a replay gets the recorded numbers."""

    async def measure(_ctx: StepContext, _item: int) -> list[dict[str, Any]]:
        return await on_thread(database.measure)

    (changes,) = await ctx.map([0], measure, key=_KEY, on_failure="keep")
    if isinstance(changes, Failure):
        raise StepFailed(changes.error)
    return list(changes)


async def _ask(ctx: StepContext, changes: Sequence[Change]) -> None:
    prompt = (
        f"Step {ctx.step_id!r} wants to change the database. If you approve, exactly these "
        "numbers of rows are changed, or nothing."
    )
    content = "\n\n".join(_describe(change) for change in changes)
    answer = await ctx.wait(Approval(ProductPrompt(prompt), content), key="confirm")
    if not answer.approved:
        reason = f": {answer.text}" if answer.text else ""
        raise StepFailed(f"a human rejected the change of the database{reason}")


def _describe(change: Change) -> str:
    # The statement is shown as a whole: a human must not approve what is not shown.
    others = f"\nand {_rows(change['others'])} of other tables" if change["others"] else ""
    values = f"\nvalues: {change['values']}" if change["values"] else ""
    rows = f"changes {_rows(change['rows'])} of {change['table']}{others}"
    return f"{change['statement']}{values}\n{rows}"


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number} rows"
