"""The handlers of contract steps: one at a time, several together, or one for every item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from signoff.contracts.checkpoint import ITEMS, named_value
from signoff.contracts.items import ITEM_KEY, RETRIES, item_names
from signoff.contracts.model import MAX_RETRIES, WorkflowStep
from signoff.contracts.runtime import ContractRuntime, Performed, StepItem
from signoff.core.checked import Checked, Otherwise
from signoff.core.context import Failure, ItemHandler
from signoff.core.context import StepContext as EngineContext
from signoff.core.effects import ProductPrompt
from signoff.core.outcome import Outcome
from signoff.core.requests import RETRY, Choice, Request
from signoff.errors import StepFailed

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
        with contract.database() as database:
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
        performed = Performed(output, others=results)
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
        # Asking for all of them at once is a lot quicker than for each.
        committed = self.contract.committed_items(ctx, self.step)

        async def one(inner: EngineContext, name: str) -> dict[str, Any]:
            item = StepItem(name, items[name], checkpoint, is_new=name not in committed)
            return await self.contract.perform(inner, self.step, item)

        outputs, failures = await self._perform_all(ctx, list(items), one)
        results = {name: output["result"] for name, output in outputs.items()}
        result = {"items": results, "failed": [name for name in items if name not in results]}
        performed = Performed({"result": result, "hint": None})
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
