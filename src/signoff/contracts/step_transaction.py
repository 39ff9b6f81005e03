"""The work of a step that has a database: performed, then committed together with its proof.

A thread that performs the work also commits it, because handing it over takes longer than most
transactions. What a human has to confirm is measured and asked for in between.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from signoff.contracts.confirmation import Change, confirm_changes, was_asked
from signoff.contracts.context import StepContext
from signoff.contracts.database import StepDatabase, StepKey
from signoff.contracts.model import StepOutput, WorkflowStep
from signoff.contracts.proving import StepBranch, prove
from signoff.contracts.work import work_then
from signoff.core.context import StepContext as EngineContext
from signoff.errors import StepFailed
from signoff.runtime.handlers import on_thread


@dataclass(frozen=True)
class StepTransaction:
    """One attempt at a step, or at one of its items, in the database."""

    step: WorkflowStep
    ctx: EngineContext
    inner: StepContext
    database: StepDatabase
    key: StepKey
    store: Callable[[StepOutput], dict[str, Any]]
    """Returns what is stored of the output of a worker."""

    async def perform(self) -> tuple[dict[str, Any], bool | None]:
        """Returns the output of the committed work, and whether the branch's condition held.

        The latter is None if it was not evaluated in this transaction.
        """
        branch = StepBranch.after(self.step)
        canceled = threading.Event()
        asked = was_asked(self.ctx)

        def commit(output: dict[str, Any], confirmed: Sequence[Change]) -> dict[str, Any] | None:
            proved = prove(
                self.inner,
                self.database,
                self.step.postconditions,
                output,
                self.key,
                confirmed,
                lambda: not canceled.is_set(),
                branch,
            )
            return None if proved is None else dict(proved)

        def finish(returned: StepOutput) -> tuple[dict[str, Any], dict[str, Any] | None]:
            if canceled.is_set():
                # A function that was abandoned has returned; no one waits for its result.
                raise StepFailed("it took too long")
            output = self.store(returned)
            self.database.take(returned.statements or ())
            return output, None if asked else commit(output, ())

        try:
            output, proved = await work_then(self.step, self.inner, finish)
            if proved is None:
                changes = await confirm_changes(self.ctx, self.database)
                proved = await on_thread(lambda: commit(output, changes))
        except BaseException:
            # A thread cannot be stopped, but it asks before it commits.
            canceled.set()
            raise
        if proved is None:
            raise StepFailed("the statements are not those that were confirmed")
        # The work of an earlier attempt, which seemed lost, may lead to another branch.
        return proved, branch.held if branch is not None and proved == output else None
