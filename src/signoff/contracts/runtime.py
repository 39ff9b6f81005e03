"""Runs the steps of a contract workflow: performs work, proves it, chooses a branch.

From top to bottom: what all steps share, the transaction of a step that has a database, and the
handlers that the engine calls.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

from signoff.contracts.checkpoint import (
    BACKUP,
    COMPLETED,
    HINT,
    ITEM_KEY,
    ITEMS,
    MARKER,
    RETRIES,
    Checkpoint,
    checkpoint_of,
    item_names,
    named_update,
    named_value,
)
from signoff.contracts.database import StepKey, back_up, is_backed_up, open_database
from signoff.contracts.model import (
    MAX_RETRIES,
    Check,
    ConditionalNext,
    ParallelItemResult,
    PendingRetry,
    StepOutput,
    WorkflowDefinition,
    WorkflowStep,
)
from signoff.contracts.work import (
    StepContext,
    check_storable,
    evaluate,
    holds,
    is_quick,
    problems_of,
    undecided,
    work,
)
from signoff.core.amounts import count
from signoff.core.checked import CheckedReply, Otherwise
from signoff.core.context import Failure, ItemHandler
from signoff.core.context import StepContext as EngineContext
from signoff.core.delta import Append
from signoff.core.effects import ProductPrompt
from signoff.core.errors import StepFailed, StoreError
from signoff.core.outcome import Outcome
from signoff.core.requests import RETRY, Approval, Choice, Request
from signoff.runtime.error_text import lost_work, unmet
from signoff.runtime.handlers import on_thread, thread_slots

if TYPE_CHECKING:
    from signoff.contracts.database import Connections, Proof, StepSession, Tables


@dataclass(frozen=True)
class StepItem:
    """What a step works on, if it fans out."""

    name: str = ""
    value: Any = None
    checkpoint: Checkpoint | None = None
    """The checkpoint of the step, which its items share."""


@dataclass(frozen=True)
class PerformedStep:
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
    def shared_database(self) -> Connections | None:
        """The database that all steps share."""
        database = self.definition.database
        return open_database(database) if database is not None else None

    def database(self) -> StepSession | None:
        """Returns the database for one attempt at a step; None if the workflow has none."""
        return self.shared_database.begin() if self.shared_database is not None else None

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
        (note,) = self._notes(database, last, self.marker(ctx, step))
        return note

    def check_work(self, ctx: EngineContext) -> None:
        """Raises `StoreError` if the database has lost the run's last work."""
        last = ctx.step_state.get(MARKER)
        database = self.database()
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
        # A retry reuses the backup of the first attempt; more of them would push older ones out.
        take = partial(back_up, database, f"before run {ctx.run}", reuse=ctx.attempt > 1)
        # Items are recorded, so this is not the address, which may contain a password.
        (backup,) = await ctx.map(
            [ctx.attempt], lambda _ctx, _attempt: take(), key="backup", on_failure="keep"
        )
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

    async def perform(
        self, ctx: EngineContext, step: WorkflowStep, item: StepItem | None = None
    ) -> dict[str, Any]:
        """Performs one of several steps or items, and checks its conditions; returns the output."""
        item = item or StepItem()
        if item.checkpoint is not None and ctx.attempt > 1:
            checkpoint = _for_retry(item.checkpoint, ctx, step, item.name)
            item = replace(item, checkpoint=checkpoint)
        database, note = self.database(), None
        # A process that died, or an attempt that failed, may have committed it all the same.
        if database is not None:
            (note,) = database.committed([self.marker(ctx, step, item.name)])
        performed = await self.perform_in(database, ctx, step, note, item)
        return performed.output

    async def perform_in(
        self,
        database: StepSession | None,
        ctx: EngineContext,
        step: WorkflowStep,
        note: str | None,
        item: StepItem | None = None,
    ) -> PerformedStep:
        """Performs a step, and checks its conditions.

        A process may have died after it committed its work and before the journal knew. Such
        work is not done again: its output is the note that is stored next to it in the database.
        """
        if note is not None:
            return PerformedStep(dict(json.loads(note)))
        item = item or StepItem()
        inner = self.context(ctx, step, database, item.value, item.checkpoint)
        store = partial(_output, ctx)
        if database is not None:
            key = self.marker(ctx, step, item.name)
            transaction = StepTransaction(step, ctx, inner, database, key)
            output = await transaction.perform(store)
            return PerformedStep(output, inner, transaction.held)
        returned = await work(step, inner)
        if returned.statements:
            raise StepFailed("the result has statements, but this workflow has no database")
        output = store(returned)
        # The engine checks the conditions of a whole step, but not those of its items.
        if ctx.scope:
            await self.check_postconditions(inner, step, output)
        return PerformedStep(output, inner)

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
        performed: PerformedStep | None = None,
    ) -> bool:
        """Evaluates a condition before a step, or about its output; raises what it raises."""
        inner = (performed and performed.inner) or self.context(ctx, step)
        if performed is not None:
            output, others = performed.output, performed.others
            inner = inner.with_result(output["result"], output["hint"], others)
        if is_quick(check):
            # Expressions cannot use the database, so they need no connection.
            return await evaluate(check, inner.seen_by(None), where)
        database = self.database()
        view = database.view() if database is not None else None
        return await evaluate(check, inner.seen_by(view), where)

    async def branch(
        self, ctx: EngineContext, step: WorkflowStep, performed: PerformedStep
    ) -> Outcome:
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


# The work of a step that has a database: performed, then committed together with its proof.
#
# The statements are applied and the conditions checked inside one transaction, which is committed
# only if all of them hold. A human is asked before a step deletes rows, or changes every row of a
# table: the rows are counted and recorded, the human approves that number, and when the work is
# applied, they are counted again, and another number refuses it.


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
    others = f"\nand {count(change['others'], 'row')} of other tables" if change["others"] else ""
    values = f"\nvalues: {change['values']}" if change["values"] else ""
    rows = f"changes {count(change['rows'], 'row')} of {change['table']}{others}"
    return f"{change['statement']}{values}\n{rows}"


# The handlers of contract steps: one at a time, several together, or one for every item.


Work = tuple[Outcome, dict[str, Any]]

LEAVE_OUT = "leave out"
"""What a human can choose for items that failed, besides a retry."""


@dataclass(frozen=True)
class _Handler:
    contract: ContractRuntime
    form: ClassVar[str]

    @property
    def definition(self) -> list[Any]:
        """What the digest of the workflow covers; the steps themselves are in its source."""
        # The number has to change with the rules of these handlers: a run that is under way must
        # not be continued by other ones.
        return ["contracts", self.form, 1]

    async def _perform_all(
        self, ctx: EngineContext, names: Sequence[str], one: ItemHandler
    ) -> tuple[dict[str, dict[str, Any]], dict[str, Failure]]:
        """Returns the outputs of the items by name, and the failures of those left out."""

        def ask_human(last: CheckedReply[list[Any]]) -> Request:
            problems = [
                f"- {name}: {end.error}"
                for name, end in zip(names, last.value or (), strict=True)
                if isinstance(end, Failure)
            ]
            prompt = (
                f"{len(problems)} of {len(names)} items of step {ctx.step_id!r} failed:\n"
                + "\n".join(problems)
                + f"\nThe others are done. Choose {RETRY!r} to try the failed ones again, or "
                f"{LEAVE_OUT!r} to continue without them."
            )
            return Choice(ProductPrompt(prompt), [RETRY, LEAVE_OUT], question_id="items_failed")

        otherwise = Otherwise(ask_human, key="failed")
        ends = await ctx.map(names, one, key=ITEM_KEY, retries=MAX_RETRIES, otherwise=otherwise)
        by_name = dict(zip(names, ends, strict=True))
        failures = {name: end for name, end in by_name.items() if isinstance(end, Failure)}
        return {name: end for name, end in by_name.items() if name not in failures}, failures


@dataclass(frozen=True)
class Single(_Handler):
    """The handler of an ordinary step."""

    step: WorkflowStep
    form = "single"

    async def __call__(self, ctx: EngineContext) -> Work:
        """Performs the step and decides which branch follows."""
        contract, step = self.contract, self.step
        update = await contract.begin(ctx)
        database = contract.database()
        note = contract.earlier_note(ctx, database, step)
        performed = await contract.perform_in(database, ctx, step, note)
        # The branch first: the time of completion is recorded, and its commit would not wait for a
        # condition that runs in a thread.
        outcome = await contract.branch(ctx, step, performed)
        output = performed.output
        update |= contract.completed(ctx, {step.name: output["result"]}, output["hint"])
        return outcome, update | contract.marked(ctx, step)


@dataclass(frozen=True)
class Together(_Handler):
    """The handler of steps that run at the same time; the last one decides what follows."""

    steps: tuple[WorkflowStep, ...]
    form = "together"

    async def __call__(self, ctx: EngineContext) -> Work:
        """Performs all steps; failed ones are retried alone, then a human is asked."""
        update = await self.contract.begin(ctx)
        self.contract.check_work(ctx)
        # Only the last step decides what follows. The others must not have to decide a branch
        # before their work can be committed.
        last = self.steps[-1]
        by_name = {
            step.name: step if step is last else replace(step, next=None) for step in self.steps
        }

        async def one(inner: EngineContext, name: str) -> dict[str, Any]:
            return await self.contract.perform(inner, by_name[name])

        outputs, _ = await self._perform_all(ctx, list(by_name), one)
        results = {name: output["result"] for name, output in outputs.items()}
        output = outputs.get(last.name, {"result": None, "hint": None})
        performed = PerformedStep(output, others=results)
        outcome = await self.contract.branch(ctx, last, performed)
        update |= self.contract.completed(ctx, results, output["hint"])
        for name in results:
            update |= self.contract.marked(ctx, by_name[name])
        return outcome, update


@dataclass(frozen=True)
class ForEach(_Handler):
    """The handler of a step that runs once for every item of a list."""

    step: WorkflowStep
    form = "for each"

    async def __call__(self, ctx: EngineContext) -> Work:
        """Performs all items; failed ones are retried alone, then a human is asked."""
        update = await self.contract.begin(ctx)
        self.contract.check_work(ctx)
        items = item_names(self._items(ctx))
        checkpoint = self.contract.checkpoint(ctx, self.step, items)

        async def one(inner: EngineContext, name: str) -> dict[str, Any]:
            item = StepItem(name, items[name], checkpoint)
            return await self.contract.perform(inner, self.step, item)

        outputs, failures = await self._perform_all(ctx, list(items), one)
        results = {name: output["result"] for name, output in outputs.items()}
        result = {"items": results, "failed": [name for name in items if name not in results]}
        performed = PerformedStep({"result": result, "hint": None})
        outcome = await self.contract.branch(ctx, self.step, performed)
        update |= self.contract.completed(ctx, {self.step.name: result}, None)
        # One item stands for all of them: the check of the next step only has to notice a database
        # that was replaced, or restored to an earlier state.
        for name in list(results)[-1:]:
            update |= self.contract.marked(ctx, self.step, name)
        update[ITEMS] = {
            name: _failed(failures[name]) if name in failures else _completed(outputs[name])
            for name in items
        }
        return outcome, update

    def _items(self, ctx: EngineContext) -> Sequence[Any]:
        key = self.step.parallel_key or ""
        point = self.contract.checkpoint(ctx, self.step)
        items = named_value(point, ctx.workflow_params, key)
        if not isinstance(items, list | tuple):
            value = "missing" if items is None else f"{items!r:.80}"
            raise StepFailed(
                f"step {self.step.name!r} needs the list {key!r}, but it is {value}; an earlier "
                "step must return it, or pass it as a parameter"
            )
        return items


def _completed(output: dict[str, Any]) -> dict[str, Any]:
    retries = {"retry_count": output[RETRIES]} if RETRIES in output else {}
    return {"status": "completed", "result": output["result"], **retries}


def _failed(failure: Failure) -> dict[str, Any]:
    return {"status": "failed", "error": failure.error, "retry_count": failure.attempts}
