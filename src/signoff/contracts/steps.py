"""The handlers of contract steps: one at a time, several together, or one for every item."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

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
    clear_next,
    evaluated,
    is_quick,
    problems_of,
    prove,
    storable,
)
from signoff.contracts.work import work
from signoff.core.checked import Checked, Otherwise
from signoff.core.context import Failure, ItemHandler
from signoff.core.context import StepContext as EngineContext
from signoff.core.delta import Append
from signoff.core.effects import ProductPrompt
from signoff.core.outcome import Outcome
from signoff.core.requests import RETRY, Choice, Request
from signoff.error_text import describe_error
from signoff.errors import StepFailed, StoreError

Work = tuple[Outcome, dict[str, Any]]

LEAVE_OUT = "leave out"
"""What a human can choose for items that failed, besides another try."""


@dataclass(frozen=True)
class ContractRuntime:
    """What the steps of one workflow share."""

    definition: WorkflowDefinition

    def context(
        self,
        ctx: EngineContext,
        step: WorkflowStep,
        database: StepDatabase | None = None,
        item: Any = None,
        point: Checkpoint | None = None,
    ) -> StepContext:
        """Returns the context of a step in the words of contract workflows."""
        point = point or self.checkpoint(ctx, step)
        last = point.completed_steps[-1].result if point.completed_steps else None
        return StepContext(
            step=step.name,
            checkpoint=point,
            params=dict(ctx.workflow_params),
            result=last,
            item=item,
            attempt=ctx.attempt,
            feedback=ctx.feedback or "",
            must_hold=[each.told for each in step.postconditions],
            folder=self.definition.folder,
            database=database,
            engine=ctx,
        )

    def checkpoint(self, ctx: EngineContext, step: WorkflowStep) -> Checkpoint:
        """Returns how far the run has come; the same for all items of a step."""
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
        """Takes a copy of the database before a run first touches it.

        Later, it looks whether what the run has done so far is still there.
        """
        self._insist_on(ctx.step_state.get(MARKER))
        database = self.definition.database
        if database is None or not database.backup or BACKUP in ctx.step_state:
            return {}
        # The item is recorded, so it is no address, which may hold a password.
        (taken,) = await ctx.map([ctx.attempt], self._back_up, key="backup", on_failure="keep")
        if isinstance(taken, Failure):
            raise StoreError(f"no copy of the database can be taken: {taken.error}")
        return {BACKUP: taken}

    def _insist_on(self, marker: Sequence[Any] | None) -> None:
        """Raises when the database has lost the run's work: then nothing it proved holds."""
        database = self.database() if marker is not None else None
        if marker is None or database is None or database.committed(tuple(marker)) is not None:
            return
        raise StoreError(
            f"the work of step {marker[1]!r} is not in the database any more: it was restored, "
            "replaced or is another one; bring back the one this run has worked on, or start anew"
        )

    def marker(self, ctx: EngineContext, step: WorkflowStep, key: str = "") -> StepKey:
        """Names the work of a step, or of one item of it, in the database."""
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
        point: Checkpoint | None = None,
    ) -> dict[str, Any]:
        """Works a step, or one item of it, and proves it; returns what it gave.

        Work that was committed by a process that died before the journal knew is not done
        again: what it gave stands beside it in the database.
        """
        marker = self.marker(ctx, step, key)
        database = self.database()
        note = database.committed(marker) if database is not None else None
        if note is not None:
            return dict(json.loads(note))
        inner = self.context(ctx, step, database, item, point)
        output = await work(step, inner)
        if database is None and output.statements:
            raise StepFailed("statements were handed in, and this workflow has no database")
        done = storable({"result": output.result, "hint": output.next_step_hint})
        if database is not None:
            database.take(output.statements or ())
            return await self._prove(inner, database, step, done, marker)
        # The engine checks a whole step, but knows no conditions of items.
        if ctx.scope:
            await self.insist(inner, step, done)
        return done

    async def _prove(
        self,
        inner: StepContext,
        database: StepDatabase,
        step: WorkflowStep,
        done: dict[str, Any],
        marker: StepKey,
    ) -> dict[str, Any]:
        left = threading.Event()
        in_time = Condition("in time", lambda _ctx: not left.is_set(), "it took too long")
        # Once it is committed it cannot be tried again, so it has to be clear what follows.
        conditions = [*step.postconditions, *clear_next(step), in_time]
        try:
            # On a thread: a condition may take its time, and the other runs go on meanwhile.
            proved = await asyncio.to_thread(prove, inner, database, conditions, done, marker)
        except asyncio.CancelledError:
            left.set()
            raise
        return dict(proved)

    async def insist(
        self, inner: StepContext, step: WorkflowStep, done: Mapping[str, Any], *more: str
    ) -> None:
        """Raises `StepFailed` with everything that does not hold, and with more problems."""
        seen = inner.seen_by(None, done["result"], done["hint"])
        if problems := [*await problems_of(step.postconditions, seen), *more]:
            raise StepFailed("; ".join(problems))

    async def holds(
        self,
        ctx: EngineContext,
        step: WorkflowStep,
        check: Check | str,
        done: Mapping[str, Any] | None = None,
    ) -> bool:
        """Evaluates a condition before a step, or about what it gave; raises what it raises."""
        inner = self.context(ctx, step)
        gave, hint = (done["result"], done["hint"]) if done else (inner.result, None)
        database = None if is_quick(check) else self.database()
        view = database.view() if database is not None else None
        return await evaluated(check, inner.seen_by(view, gave, hint))


@dataclass(frozen=True)
class Single:
    """The handler of an ordinary step."""

    contract: ContractRuntime
    step: WorkflowStep

    @property
    def definition(self) -> list[Any]:
        """What a run depends on; the rest is kept with the run."""
        return ["contracts", "single", 1]

    async def __call__(self, ctx: EngineContext) -> Work:
        """Works the step and decides which way it leads."""
        update = await self.contract.begin(ctx)
        done = await self.contract.perform(ctx, self.step)
        update |= _completed(ctx, {self.step.name: done["result"]}, done["hint"])
        update |= _marked(self.contract, ctx, self.step)
        return await _leads(self.contract, ctx, self.step, done), update


@dataclass(frozen=True)
class Together:
    """The handler of neighbours that run at the same time; the last one says what follows."""

    contract: ContractRuntime
    steps: tuple[WorkflowStep, ...]

    @property
    def definition(self) -> list[Any]:
        """What a run depends on; the rest is kept with the run."""
        return ["contracts", "together", 1]

    async def __call__(self, ctx: EngineContext) -> Work:
        """Works all steps; those that fail are tried again alone, then a person is asked."""
        update = await self.contract.begin(ctx)
        last = self.steps[-1]
        by_name = {
            step.name: step if step is last else replace(step, next=None) for step in self.steps
        }

        async def one(inner: EngineContext, name: str) -> dict[str, Any]:
            return await self.contract.perform(inner, by_name[name])

        results = await _all_done(ctx, list(by_name), one)
        gave = {name: done["result"] for name, done in results.items()}
        done = results.get(last.name, {"result": None, "hint": None})
        update |= _completed(ctx, gave, done["hint"])
        for name in gave:
            update |= _marked(self.contract, ctx, by_name[name])
        return await _leads(self.contract, ctx, last, done), update


@dataclass(frozen=True)
class ForEach:
    """The handler of a step that is worked once for every item of a list."""

    contract: ContractRuntime
    step: WorkflowStep

    @property
    def definition(self) -> list[Any]:
        """What a run depends on; the rest is kept with the run."""
        return ["contracts", "for each", 1]

    async def __call__(self, ctx: EngineContext) -> Work:
        """Works all items; those that fail are tried again alone, then a person is asked."""
        update = await self.contract.begin(ctx)
        items = self._items(ctx)
        names = {_item_name(item, index): item for index, item in enumerate(items)}
        point = self.contract.checkpoint(ctx, self.step)

        async def one(inner: EngineContext, name: str) -> dict[str, Any]:
            return await self.contract.perform(inner, self.step, names[name], name, point)

        results = await _all_done(ctx, list(names), one)
        gave = {name: done["result"] for name, done in results.items()}
        result = {"items": gave, "failed": [name for name in names if name not in gave]}
        update |= _completed(ctx, {self.step.name: result}, None)
        for name in list(gave)[-1:]:
            update |= _marked(self.contract, ctx, self.step, name)
        update[ITEMS] = {
            name: {"status": "completed", "result": gave[name]}
            if name in gave
            else {"status": "failed", "error": "left out by a person"}
            for name in names
        }
        return await _leads(self.contract, ctx, self.step, {"result": result, "hint": None}), update

    def _items(self, ctx: EngineContext) -> list[Any]:
        key = self.step.parallel_key or ""
        values = {**ctx.step_state, **ctx.workflow_params}
        found = lookup(values, key)
        if not isinstance(found, list | tuple):
            what = "nothing" if found is None else f"{found!r:.80}"
            raise StepFailed(
                f"step {self.step.name!r} works the items of {key!r}, and that is {what}; an "
                "earlier step, or a parameter, must give a list"
            )
        return list(found)


async def _all_done(
    ctx: EngineContext, names: Sequence[str], one: ItemHandler
) -> dict[str, dict[str, Any]]:
    """Returns what the items gave, by name, without those a human left out."""

    def failed(last: Checked[list[Any]]) -> Request:
        problems = [
            f"- {name}: {end.error}"
            for name, end in zip(names, last.value or (), strict=True)
            if isinstance(end, Failure)
        ]
        prompt = (
            f"{len(problems)} of {len(names)} items of step {ctx.step_id!r} failed, the others are "
            "done:\n" + "\n".join(problems) + f"\n{RETRY} works them again, {LEAVE_OUT} goes on "
            "without them."
        )
        return Choice(ProductPrompt(prompt), [RETRY, LEAVE_OUT], question_id="items_failed")

    ended = await ctx.map(
        names, one, key="items", retries=MAX_RETRIES, otherwise=Otherwise(failed, key="failed")
    )
    by_name = zip(names, ended, strict=True)
    return {name: end for name, end in by_name if not isinstance(end, Failure)}


def _completed(ctx: EngineContext, gave: Mapping[str, Any], hint: str | None) -> dict[str, Any]:
    """Returns the update of steps that are done: their results, and what they gave by name."""
    at = ctx.now().isoformat()
    update: dict[str, Any] = {}
    for result in gave.values():
        if isinstance(result, Mapping):
            update |= {key: value for key, value in result.items() if not str(key).startswith("_")}
    done = [{"step": step, "completed_at": at, "result": gave[step]} for step in gave]
    return {**update, COMPLETED: Append(done), HINT: hint}


def _marked(
    contract: ContractRuntime, ctx: EngineContext, step: WorkflowStep, key: str = ""
) -> dict[str, Any]:
    """Returns the update that remembers which work must be found in the database later."""
    if contract.definition.database is None:
        return {}
    return {MARKER: list(contract.marker(ctx, step, key))}


async def _leads(
    contract: ContractRuntime, ctx: EngineContext, step: WorkflowStep, done: Mapping[str, Any]
) -> Outcome:
    """Returns the outcome that stands for the branch a step's result leads to."""
    if step.human_gate is not None or not isinstance(step.next, ConditionalNext):
        return Outcome.OK
    try:
        held = await contract.holds(ctx, step, step.next.condition, done)
    except Exception as error:  # an author's expression or function may raise anything
        problem = f"what follows {step.name!r} cannot be decided: {describe_error(error)}"
        if not ctx.scope and contract.definition.database is None:
            # The engine would check the rest only later, and the worker should know all of it.
            await contract.insist(contract.context(ctx, step), step, done, problem)
        raise StepFailed(problem) from error
    return Outcome.OK if held else Outcome.ITERATE


def _item_name(item: Any, index: int) -> str:
    """Returns what an item is called: its own name, or its place."""
    if isinstance(item, str) and item and len(item) <= 60:
        return f"{index}:{item}"
    if isinstance(item, Mapping):
        for key in ("id", "name", "key"):
            if isinstance(item.get(key), str | int):
                return f"{index}:{item[key]}"
    return str(index)
