"""The handlers of contract steps: one at a time, several together, or one for every item."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from signoff.contracts.checkpoint import (
    BACKUP,
    COMPLETED,
    HINT,
    ITEMS,
    MARKER,
    Checkpoint,
    checkpoint_of,
    lookup,
)
from signoff.contracts.context import StepContext
from signoff.contracts.database import StepDatabase, StepKey, WorkflowDatabase, open_database
from signoff.contracts.model import (
    MAX_RETRIES,
    Check,
    Condition,
    ConditionalNext,
    WorkflowDefinition,
    WorkflowStep,
)
from signoff.contracts.proving import (
    branch_conditions,
    check_storable,
    evaluate,
    is_quick,
    problems_of,
    prove,
)
from signoff.contracts.work import work
from signoff.core.checked import Checked, Otherwise
from signoff.core.context import Failure, ItemHandler
from signoff.core.context import StepContext as EngineContext
from signoff.core.delta import Append
from signoff.core.effects import ProductPrompt
from signoff.core.outcome import Outcome
from signoff.core.requests import Choice, Request
from signoff.core.transitions import RETRY
from signoff.error_text import describe_error
from signoff.errors import StepFailed, StoreError

Work = tuple[Outcome, dict[str, Any]]

LEAVE_OUT = "leave out"
"""What a human can choose for items that failed, besides a retry."""


@dataclass(frozen=True)
class ContractRuntime:
    """The definition and the database, which the steps of a workflow share."""

    definition: WorkflowDefinition

    def context(
        self,
        ctx: EngineContext,
        step: WorkflowStep,
        database: StepDatabase | None = None,
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

    def checkpoint(self, ctx: EngineContext, step: WorkflowStep) -> Checkpoint:
        """Returns the progress of the run, which is the same for all items of a step."""
        return checkpoint_of(ctx.run, self.definition.type, step.name, ctx.step_state)

    @cached_property
    def shared_database(self) -> WorkflowDatabase | None:
        """The database that all steps share."""
        database = self.definition.database
        return open_database(database) if database is not None else None

    def database(self) -> StepDatabase | None:
        """Returns the database for one attempt at a step."""
        return self.shared_database.begin() if self.shared_database is not None else None

    async def begin(self, ctx: EngineContext) -> dict[str, Any]:
        """Prepares the database for a step; returns an update of the run's state.

        Before the first step it takes a backup. Before a later one it checks that the database
        still has the work of the run.
        """
        self._check_marker(ctx.step_state.get(MARKER))
        database = self.definition.database
        if database is None or not database.backup or BACKUP in ctx.step_state:
            return {}
        # Items are recorded, so this is not the address, which may contain a password.
        (backup,) = await ctx.map([ctx.attempt], self._back_up, key="backup", on_failure="keep")
        if isinstance(backup, Failure):
            raise StoreError(f"the database cannot be backed up: {backup.error}")
        return {BACKUP: backup}

    def _check_marker(self, marker: Sequence[Any] | None) -> None:
        """Raises if the database has lost the run's work: then none of its proofs hold."""
        database = self.database() if marker is not None else None
        if marker is None or database is None or database.committed(tuple(marker)) is not None:
            return
        raise StoreError(
            f"the work of step {marker[1]!r} is no longer in the database: it was restored or "
            "replaced; bring back the database that this run worked on, or start a new run"
        )

    def marker(self, ctx: EngineContext, step: WorkflowStep, key: str = "") -> StepKey:
        """Returns the key of a step's work, or of one item's, in the database."""
        return f"{ctx.run}/{ctx.run_key}", step.name, ctx.visit, key

    def _back_up(self, ctx: EngineContext, attempt: int) -> str:
        if self.shared_database is None:
            return ""
        # A retry reuses the backup of the first attempt; more of them would push older ones out.
        return self.shared_database.back_up(f"before run {ctx.run}", reuse=attempt > 1)

    async def perform(
        self,
        ctx: EngineContext,
        step: WorkflowStep,
        item: Any = None,
        key: str = "",
        checkpoint: Checkpoint | None = None,
    ) -> dict[str, Any]:
        """Performs a step, or one item of it, and checks its conditions; returns the output.

        A process may have died after it committed its work and before the journal knew. Such
        work is not done again: its output is stored next to it in the database.
        """
        marker = self.marker(ctx, step, key)
        database = self.database()
        note = database.committed(marker) if database is not None else None
        if note is not None:
            return dict(json.loads(note))
        inner = self.context(ctx, step, database, item, checkpoint)
        returned = await work(step, inner)
        if database is None and returned.statements:
            raise StepFailed("the result has statements, but this workflow has no database")
        output = check_storable({"result": returned.result, "hint": returned.next_step_hint})
        if database is not None:
            database.take(returned.statements or ())
            return await self._prove(inner, database, step, output, marker)
        # The engine checks the conditions of a whole step, but not those of its items.
        if ctx.scope:
            await self.check_postconditions(inner, step, output)
        return output

    async def _prove(
        self,
        inner: StepContext,
        database: StepDatabase,
        step: WorkflowStep,
        output: dict[str, Any],
        marker: StepKey,
    ) -> dict[str, Any]:
        canceled = threading.Event()
        in_time = Condition("in time", lambda _ctx: not canceled.is_set(), "it took too long")
        # Committed work cannot be tried again, so the branch after it must be decidable.
        conditions = [*step.postconditions, *branch_conditions(step), in_time]
        try:
            # In a thread: conditions may be slow, and other runs continue meanwhile.
            proved = await asyncio.to_thread(prove, inner, database, conditions, output, marker)
        except asyncio.CancelledError:
            # The thread cannot be stopped, but its last condition keeps it from committing.
            canceled.set()
            raise
        return dict(proved)

    async def check_postconditions(
        self, inner: StepContext, step: WorkflowStep, output: Mapping[str, Any], *problems: str
    ) -> None:
        """Raises `StepFailed` with all conditions that do not hold, and with other problems."""
        ctx = inner.seen_by(None, output["result"], output["hint"])
        if found := [*await problems_of(step.postconditions, ctx), *problems]:
            raise StepFailed("; ".join(found))

    async def holds(
        self,
        ctx: EngineContext,
        step: WorkflowStep,
        check: Check | str,
        output: Mapping[str, Any] | None = None,
    ) -> bool:
        """Evaluates a condition before a step, or about its output; raises what it raises."""
        inner = self.context(ctx, step)
        result, hint = (output["result"], output["hint"]) if output else (inner.result, None)
        # Expressions cannot use the database, so quick ones need no connection.
        database = None if is_quick(check) else self.database()
        view = database.view() if database is not None else None
        return await evaluate(check, inner.seen_by(view, result, hint))


@dataclass(frozen=True)
class _Handler:
    contract: ContractRuntime
    form: ClassVar[str]

    @property
    def definition(self) -> list[Any]:
        """What the digest of the workflow covers; the steps themselves are in its source."""
        return ["contracts", self.form, 1]


@dataclass(frozen=True)
class Single(_Handler):
    """The handler of an ordinary step."""

    step: WorkflowStep
    form = "single"

    async def __call__(self, ctx: EngineContext) -> Work:
        """Performs the step and decides which branch follows."""
        update = await self.contract.begin(ctx)
        output = await self.contract.perform(ctx, self.step)
        update |= _completed(ctx, {self.step.name: output["result"]}, output["hint"])
        update |= _marked(self.contract, ctx, self.step)
        return await _branch(self.contract, ctx, self.step, output), update


@dataclass(frozen=True)
class Together(_Handler):
    """The handler of steps that run at the same time; the last one decides what follows."""

    steps: tuple[WorkflowStep, ...]
    form = "together"

    async def __call__(self, ctx: EngineContext) -> Work:
        """Performs all steps; failed ones are retried alone, then a human is asked."""
        update = await self.contract.begin(ctx)
        last = self.steps[-1]
        by_name = {
            step.name: step if step is last else replace(step, next=None) for step in self.steps
        }

        async def one(inner: EngineContext, name: str) -> dict[str, Any]:
            return await self.contract.perform(inner, by_name[name])

        outputs = await _perform_all(ctx, list(by_name), one)
        results = {name: output["result"] for name, output in outputs.items()}
        output = outputs.get(last.name, {"result": None, "hint": None})
        update |= _completed(ctx, results, output["hint"])
        for name in results:
            update |= _marked(self.contract, ctx, by_name[name])
        return await _branch(self.contract, ctx, last, output), update


@dataclass(frozen=True)
class ForEach(_Handler):
    """The handler of a step that runs once for every item of a list."""

    step: WorkflowStep
    form = "for each"

    async def __call__(self, ctx: EngineContext) -> Work:
        """Performs all items; failed ones are retried alone, then a human is asked."""
        update = await self.contract.begin(ctx)
        items = {_item_name(item, index): item for index, item in enumerate(self._items(ctx))}
        checkpoint = self.contract.checkpoint(ctx, self.step)

        async def one(inner: EngineContext, name: str) -> dict[str, Any]:
            return await self.contract.perform(inner, self.step, items[name], name, checkpoint)

        outputs = await _perform_all(ctx, list(items), one)
        results = {name: output["result"] for name, output in outputs.items()}
        result = {"items": results, "failed": [name for name in items if name not in results]}
        update |= _completed(ctx, {self.step.name: result}, None)
        for name in list(results)[-1:]:
            update |= _marked(self.contract, ctx, self.step, name)
        update[ITEMS] = {
            name: {"status": "completed", "result": results[name]}
            if name in results
            else {"status": "failed", "error": "left out by a human"}
            for name in items
        }
        output = {"result": result, "hint": None}
        return await _branch(self.contract, ctx, self.step, output), update

    def _items(self, ctx: EngineContext) -> Sequence[Any]:
        key = self.step.parallel_key or ""
        items = lookup({**ctx.step_state, **ctx.workflow_params}, key)
        if not isinstance(items, list | tuple):
            value = "missing" if items is None else f"{items!r:.80}"
            raise StepFailed(
                f"step {self.step.name!r} needs the list {key!r}, but it is {value}; an earlier "
                "step must return it, or pass it as a parameter"
            )
        return items


async def _perform_all(
    ctx: EngineContext, names: Sequence[str], one: ItemHandler
) -> dict[str, dict[str, Any]]:
    """Returns the outputs of the items by name, without those that a human left out."""

    def ask_human(last: Checked[list[Any]]) -> Request:
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

    ends = await ctx.map(
        names, one, key="items", retries=MAX_RETRIES, otherwise=Otherwise(ask_human, key="failed")
    )
    by_name = zip(names, ends, strict=True)
    return {name: end for name, end in by_name if not isinstance(end, Failure)}


def _completed(ctx: EngineContext, results: Mapping[str, Any], hint: str | None) -> dict[str, Any]:
    """Returns the update after steps: their results, and the values in these by name."""
    now = ctx.now().isoformat()
    update: dict[str, Any] = {}
    for result in results.values():
        if isinstance(result, Mapping):
            update |= {key: value for key, value in result.items() if not str(key).startswith("_")}
    done = [{"step": s, "completed_at": now, "result": result} for s, result in results.items()]
    return {**update, COMPLETED: Append(done), HINT: hint}


def _marked(
    contract: ContractRuntime, ctx: EngineContext, step: WorkflowStep, key: str = ""
) -> dict[str, Any]:
    """Returns the update that records which work the database must contain from now on."""
    if contract.definition.database is None:
        return {}
    return {MARKER: list(contract.marker(ctx, step, key))}


async def _branch(
    contract: ContractRuntime, ctx: EngineContext, step: WorkflowStep, output: Mapping[str, Any]
) -> Outcome:
    """Returns the outcome whose edge is the branch that follows."""
    if step.human_gate is not None or not isinstance(step.next, ConditionalNext):
        return Outcome.OK
    try:
        held = await contract.holds(ctx, step, step.next.condition, output)
    except Exception as error:  # an author's expression or function may raise anything
        problem = f"the branch after {step.name!r} cannot be decided: {describe_error(error)}"
        if not ctx.scope and contract.definition.database is None:
            # The engine checks the postconditions only later, and the worker should get all
            # problems at once.
            inner = contract.context(ctx, step)
            await contract.check_postconditions(inner, step, output, problem)
        raise StepFailed(problem) from error
    return Outcome.OK if held else Outcome.ITERATE


def _item_name(item: Any, index: int) -> str:
    """Returns the name of an item: its position, and its own id, name or text if it has one."""
    if isinstance(item, str) and item and len(item) <= 60:
        return f"{index}:{item}"
    if isinstance(item, Mapping):
        for key in ("id", "name", "key"):
            if isinstance(item.get(key), str | int):
                return f"{index}:{item[key]}"
    return str(index)
