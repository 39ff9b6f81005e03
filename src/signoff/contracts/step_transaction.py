"""The work of a step that has a database: performed, then committed together with its proof.

The statements are applied and the conditions checked inside one transaction, which is committed
only if all of them hold. A human is asked before a step deletes rows, or changes every row of a
table: the rows are counted and recorded, the human approves that number, and when the work is
applied, they are counted again, and another number refuses it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from signoff.contracts.context import StepContext
from signoff.contracts.model import Check, ConditionalNext, StepOutput, WorkflowStep
from signoff.contracts.proving import holds, is_quick, undecided
from signoff.contracts.work import work
from signoff.core.context import Failure
from signoff.core.context import StepContext as EngineContext
from signoff.core.effects import ProductPrompt
from signoff.core.requests import Approval
from signoff.errors import StepFailed
from signoff.runtime.handlers import on_thread, thread_slots

if TYPE_CHECKING:
    from signoff.contracts.database import Proof, StepKey, StepSession, Tables

Change = Mapping[str, Any]
"""A statement that has to be confirmed: statement, values, table, rows, others."""

_CHANGES = "changes"
"""The key under which the changes to confirm are recorded."""


@dataclass
class StepTransaction:
    """One attempt at a step, or at one of its items, in the database."""

    step: WorkflowStep
    ctx: EngineContext
    inner: StepContext
    database: StepSession
    key: StepKey
    held: bool | None = None
    """Whether the branch's condition held in this transaction; None if it was not evaluated."""

    async def perform(self, store: Callable[[StepOutput], dict[str, Any]]) -> dict[str, Any]:
        """Returns the output of the committed work; `store` makes it of what the worker returned.

        If an earlier attempt that seemed lost was committed after all, it is the output of that.
        """
        returned = await work(self.step, self.inner)
        output = store(returned)
        canceled = threading.Event()
        # Once a human was asked, the work is never applied without the answer, even if other rows
        # match by now and it would need no confirmation any more.
        asked = _was_asked(self.ctx)

        def begin() -> str | None:
            self.database.take(returned.statements or ())
            return None if asked else self._commit(output, (), canceled)

        try:
            # A thousand items that end at once must not take a thread each.
            async with thread_slots():
                note = await on_thread(begin)
            if note is None:
                changes = await _confirmed_changes(self.ctx, self.database)
                async with thread_slots():
                    note = await on_thread(partial(self._commit, output, changes, canceled))
        except BaseException:
            # A thread cannot be stopped, but it asks before it commits.
            canceled.set()
            raise
        if note is None:
            raise StepFailed("the statements are not those that were confirmed")
        if note == json.dumps(output):
            return output
        # The earlier work may lead to another branch than the one that was evaluated.
        self.held = None
        return dict(json.loads(note))

    def _commit(
        self, output: Mapping[str, Any], confirmed: Sequence[Change], canceled: threading.Event
    ) -> str | None:
        """Commits the statements if the conditions hold; raises `StepFailed` with all problems.

        Returns the note that is in the database now; None if nothing was committed, because a human
        has to confirm a change that is not in `confirmed`.
        """
        about = self.inner.with_result(output["result"], output["hint"])

        def holds_in(check: Check | str, where: str, view: Tables) -> bool:
            return holds(check, about.seen_by(view), where)

        def is_decidable(branch: ConditionalNext, view: Tables) -> bool:
            self.held = holds_in(branch.condition, branch.where, view)
            return True

        proofs: list[Proof] = [
            (
                each.name,
                partial(holds_in, each.check, each.where),
                each.message,
                is_quick(each.check),
            )
            for each in self.step.postconditions
        ]
        branch = self.step.next
        # A branch after items looks at all of them, and after a gate a human decides.
        if isinstance(branch, ConditionalNext) and not (
            self.step.parallel_key or self.step.human_gate
        ):
            # Committed work cannot be tried again, so the branch after it is decided here, once.
            decidable = partial(is_decidable, branch)
            quick = is_quick(branch.condition)
            proofs.append(("next", decidable, undecided(self.step.name), quick))
        proofs.append(("in time", lambda _view: not canceled.is_set(), "it took too long", True))
        return self.database.commit(proofs, self.key, json.dumps(output), confirmed)


def _was_asked(ctx: EngineContext) -> bool:
    """Whether changes of this attempt have been measured before, in order to ask about them."""
    return ctx.port is not None and ctx.port.was_requested(ctx, _CHANGES)


async def _confirmed_changes(ctx: EngineContext, database: StepSession) -> Sequence[Change]:
    """Returns the changes that a human has confirmed; raises `StepFailed` if they are rejected."""

    async def measure(_ctx: EngineContext, _item: int) -> list[dict[str, Any]]:
        return await on_thread(database.measure)

    # Recorded, so that a replay asks about the same numbers.
    (changes,) = await ctx.map([0], measure, key=_CHANGES, on_failure="keep")
    if isinstance(changes, Failure):
        raise StepFailed(changes.error)
    if changes:
        await _ask(ctx, changes)
    return list(changes)


async def _ask(ctx: EngineContext, changes: Sequence[Change]) -> None:
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
