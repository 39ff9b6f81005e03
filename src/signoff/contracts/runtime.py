"""What the steps of a contract workflow share: performing work, proving it, choosing a branch."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakSet

from signoff.contracts.checkpoint import (
    BACKUP,
    HINT,
    MARKER,
    Checkpoint,
    checkpoint_of,
)
from signoff.contracts.context import StepContext
from signoff.contracts.database import StepKey, is_backed_up, open_database
from signoff.contracts.items import RETRIES
from signoff.contracts.model import (
    Check,
    ConditionalNext,
    ParallelItemResult,
    PendingRetry,
    StepOutput,
    WorkflowDefinition,
    WorkflowStep,
)
from signoff.contracts.proving import check_storable, evaluate, is_quick, problems_of, undecided
from signoff.contracts.results import COMPLETED, named_update
from signoff.contracts.step_transaction import StepTransaction
from signoff.contracts.work import work
from signoff.core.context import Failure
from signoff.core.context import StepContext as EngineContext
from signoff.core.delta import Append
from signoff.core.outcome import Outcome
from signoff.error_text import lost_work, unmet
from signoff.errors import StepFailed, StoreError

if TYPE_CHECKING:
    from signoff.contracts.database import GuardedDatabase, StepSession


@dataclass(frozen=True)
class StepItem:
    """What a step works on, if it fans out."""

    name: str = ""
    value: Any = None
    checkpoint: Checkpoint | None = None
    """The checkpoint of the step, which its items share."""
    is_new: bool = False
    """Whether no earlier process has committed its work."""


@dataclass(frozen=True)
class Performed:
    """A step that was performed, before the branch after it is chosen."""

    output: dict[str, Any]
    inner: StepContext | None = None
    """The context in which it was performed, if that was now."""
    held: bool | None = None
    """Whether the condition of the branch held when the work was committed; None if unknown."""
    others: Mapping[str, Any] = field(default_factory=dict)
    """The results of steps that were performed together with it."""


@dataclass(frozen=True)
class ContractRuntime:
    """The definition and the database, which the steps of a workflow share."""

    definition: WorkflowDefinition
    _looked: WeakSet[asyncio.Task[Any]] = field(
        default_factory=WeakSet, init=False, repr=False, compare=False
    )
    """The tasks that drive a run and have looked for work that a dead process may have left."""

    def context(
        self,
        ctx: EngineContext,
        step: WorkflowStep,
        database: StepSession | None = None,
        item: Any = None,
        checkpoint: Checkpoint | None = None,
    ) -> StepContext:
        """Returns the context that a contract step gets, for a context of the engine."""
        checkpoint = checkpoint or self.checkpoint(ctx, step)
        done = checkpoint.completed_steps
        return StepContext(
            step=step.name,
            checkpoint=checkpoint,
            params=dict(ctx.workflow_params),
            result=done[-1].result if done else None,
            item=item,
            attempt=ctx.attempt,
            feedback=ctx.feedback or "",
            must_hold=[each.description for each in step.postconditions],
            folder=self.definition.folder,
            database=database,
            engine=ctx,
        )

    def checkpoint(
        self, ctx: EngineContext, step: WorkflowStep, items: Iterable[str] = ()
    ) -> Checkpoint:
        """Returns the progress of the run, which is the same for all items of a step."""
        states = dict.fromkeys(items, ParallelItemResult("pending"))
        retry = _pending_retry(ctx, step)
        return checkpoint_of(
            ctx.run, self.definition.type, step.name, ctx.step_state, retry, states
        )

    @cached_property
    def shared_database(self) -> GuardedDatabase | None:
        """The database that all steps share."""
        database = self.definition.database
        return open_database(database) if database is not None else None

    @contextmanager
    def database(self) -> Iterator[StepSession | None]:
        """Yields the database for one attempt at a step; None if the workflow has none."""
        if self.shared_database is None:
            yield None
            return
        with closing(self.shared_database.begin()) as database:
            yield database

    def earlier_note(
        self, ctx: EngineContext, database: StepSession | None, step: WorkflowStep
    ) -> str | None:
        """Returns the note of work that a process may have committed before it died.

        Raises `StoreError` if the database has lost the run's last work: then none of its proofs
        hold.
        """
        if database is None:
            return None
        last = ctx.step_state.get(MARKER)
        if last is not None:
            database.require(last)
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        if ctx.attempt == 1 and task in self._looked:
            # A run that is resumed gets another task. As long as this one drives it, no other
            # process can have begun the step; the transaction still checks the last work.
            return None
        self._looked.add(task)
        (note,) = self._notes(database, last, self.marker(ctx, step))
        return note

    def committed_items(self, ctx: EngineContext, step: WorkflowStep) -> frozenset[str]:
        """Returns the items of a step whose work the database has, although the journal may not."""
        with self.database() as database:
            if database is None:
                return frozenset()
            return database.committed_items(self.marker(ctx, step))

    def check_work(self, ctx: EngineContext) -> None:
        """Raises `StoreError` if the database has lost the run's last work."""
        last = ctx.step_state.get(MARKER)
        with self.database() as database:
            if database is not None and last is not None:
                self._notes(database, last)

    def _notes(
        self, database: StepSession, last: StepKey | None, *keys: StepKey
    ) -> list[str | None]:
        # A backup that was restored under a run takes committed steps away. Their results are still
        # in the journal, so every later proof would be about another database.
        if last is None:
            return database.committed(keys)
        found, *notes = database.committed([last, *keys])
        if found is None:
            raise lost_work(last[1])
        return notes

    async def begin(self, ctx: EngineContext) -> dict[str, Any]:
        """Takes a backup before the run first uses the database; returns an update of its state."""
        database = self.definition.database
        # Once per run: the state remembers the backup, also after a resume.
        if database is None or not is_backed_up(database) or BACKUP in ctx.step_state:
            return {}
        # Items are recorded, so this is not the address, which may contain a password.
        (backup,) = await ctx.map([ctx.attempt], self._back_up, key="backup", on_failure="keep")
        if isinstance(backup, Failure):
            raise StoreError(f"the database cannot be backed up: {backup.error}")
        return {BACKUP: backup}

    def completed(
        self, ctx: EngineContext, results: Mapping[str, Any], hint: str | None
    ) -> dict[str, Any]:
        """Returns the update after steps: their results, and the values in these by name."""
        now = ctx.now().isoformat()
        done = [{"step": s, "completed_at": now, "result": result} for s, result in results.items()]
        named = self._named_update(ctx, results)
        return {**named, COMPLETED: Append(done), HINT: hint}

    def _named_update(self, ctx: EngineContext, results: Mapping[str, Any]) -> dict[str, Any]:
        steps = {step.name: step for step in self.definition.steps}
        params = {*ctx.workflow_params, *(self.definition.params or ())}
        return named_update(ctx.step_state, results, steps, params)

    def marker(self, ctx: EngineContext, step: WorkflowStep, key: str = "") -> StepKey:
        """Returns the key of a step's work, or of one item's, in the database."""
        return f"{ctx.run}/{ctx.run_key}", step.name, ctx.visit, key

    def marked(self, ctx: EngineContext, step: WorkflowStep, key: str = "") -> dict[str, Any]:
        """Returns the update that records which work the database must contain from now on."""
        marker = self.marker(ctx, step, key)
        return {} if self.definition.database is None else {MARKER: list(marker)}

    def _back_up(self, ctx: EngineContext, attempt: int) -> str:
        if self.shared_database is None:
            return ""
        # A retry reuses the backup of the first attempt; more of them would push older ones out.
        return self.shared_database.back_up(f"before run {ctx.run}", reuse=attempt > 1)

    async def perform(
        self, ctx: EngineContext, step: WorkflowStep, item: StepItem | None = None
    ) -> dict[str, Any]:
        """Performs one of several steps or items, and checks its conditions; returns the output."""
        item = item or StepItem()
        if item.checkpoint is not None and ctx.attempt > 1:
            checkpoint = _for_retry(item.checkpoint, ctx, step, item.name)
            item = replace(item, checkpoint=checkpoint)
        with self.database() as database:
            key = self.marker(ctx, step, item.name)
            note: str | None = None
            # A retry looks again: the attempt before it may have been committed although it failed.
            if database is not None and (ctx.attempt > 1 or not item.is_new):
                (note,) = database.committed([key])
            performed = await self.perform_in(database, ctx, step, note, item)
        return performed.output

    async def perform_in(
        self,
        database: StepSession | None,
        ctx: EngineContext,
        step: WorkflowStep,
        note: str | None,
        item: StepItem | None = None,
    ) -> Performed:
        """Performs a step, and checks its conditions.

        A process may have died after it committed its work and before the journal knew. Such
        work is not done again: its output is the note that is stored next to it in the database.
        """
        if note is not None:
            return Performed(dict(json.loads(note)))
        item = item or StepItem()
        inner = self.context(ctx, step, database, item.value, item.checkpoint)
        store = partial(_output, ctx)
        if database is not None:
            key = self.marker(ctx, step, item.name)
            transaction = StepTransaction(step, ctx, inner, database, key)
            output = await transaction.perform(store)
            return Performed(output, inner, transaction.held)
        returned = await work(step, inner)
        if returned.statements:
            raise StepFailed("the result has statements, but this workflow has no database")
        output = store(returned)
        # The engine checks the conditions of a whole step, but not those of its items.
        if ctx.scope:
            await self.check_postconditions(inner, step, output)
        return Performed(output, inner)

    async def check_postconditions(
        self, inner: StepContext, step: WorkflowStep, output: Mapping[str, Any], *problems: str
    ) -> None:
        """Raises `StepFailed` with all conditions that do not hold, and with other problems."""
        ctx = inner.seen_by(None).with_result(output["result"], output["hint"])
        if found := [*await problems_of(step.postconditions, ctx), *problems]:
            raise StepFailed("; ".join(found))

    async def holds(
        self,
        ctx: EngineContext,
        step: WorkflowStep,
        check: Check | str,
        where: str,
        performed: Performed | None = None,
    ) -> bool:
        """Evaluates a condition before a step, or about its output; raises what it raises."""
        inner = (performed and performed.inner) or self.context(ctx, step)
        if performed is not None:
            output, others = performed.output, performed.others
            inner = inner.with_result(output["result"], output["hint"], others)
        if is_quick(check):
            # Expressions cannot use the database, so they need no connection.
            return await evaluate(check, inner.seen_by(None), where)
        with self.database() as database:
            view = database.view() if database is not None else None
            return await evaluate(check, inner.seen_by(view), where)

    async def branch(self, ctx: EngineContext, step: WorkflowStep, performed: Performed) -> Outcome:
        """Returns the outcome whose edge is the branch that follows."""
        if step.human_gate is not None or not isinstance(step.next, ConditionalNext):
            return Outcome.OK
        try:
            held = performed.held
            if held is None:
                branch = step.next
                held = await self.holds(ctx, step, branch.condition, branch.where, performed)
        except Exception as error:  # an author's expression or function may raise anything
            problem = unmet(step.name, undecided(step.name), error)
            if not ctx.scope and self.definition.database is None:
                # The engine checks the postconditions only later, and the worker should get all
                # problems at once.
                inner = performed.inner or self.context(ctx, step)
                await self.check_postconditions(inner, step, performed.output, problem)
            raise StepFailed(problem) from error
        return Outcome.OK if held else Outcome.ITERATE


def _output(ctx: EngineContext, returned: StepOutput) -> dict[str, Any]:
    """Returns what is stored of a step, or of an item, which knows how often it was retried."""
    retries = {RETRIES: ctx.attempt - 1} if ctx.scope and ctx.attempt > 1 else {}
    return check_storable({"result": returned.result, "hint": returned.next_step_hint, **retries})


def _pending_retry(ctx: EngineContext, step: WorkflowStep) -> PendingRetry | None:
    if ctx.attempt == 1:
        return None
    return PendingRetry(step.name, ctx.feedback or "", ctx.attempt)


def _for_retry(
    checkpoint: Checkpoint, ctx: EngineContext, step: WorkflowStep, item: str
) -> Checkpoint:
    """Returns the checkpoint of a step for one of its items that is tried again."""
    failed = ParallelItemResult("pending", error=ctx.feedback, retry_count=ctx.attempt - 1)
    items = {**checkpoint.parallel_results, item: failed}
    return replace(checkpoint, pending_retry=_pending_retry(ctx, step), parallel_results=items)
