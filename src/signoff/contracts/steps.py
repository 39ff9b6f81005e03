"""The handlers of contract steps: one at a time, several together, or one for every item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from signoff.contracts.checkpoint import COMPLETED, HINT, ITEMS, lookup
from signoff.contracts.model import MAX_RETRIES, WorkflowStep
from signoff.contracts.runtime import ContractRuntime
from signoff.core.checked import Checked, Otherwise
from signoff.core.context import Failure, ItemHandler
from signoff.core.context import StepContext as EngineContext
from signoff.core.delta import Append
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
        update |= self.contract.marked(ctx, self.step)
        return await self.contract.branch(ctx, self.step, output), update


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
            update |= self.contract.marked(ctx, by_name[name])
        return await self.contract.branch(ctx, last, output), update


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
            update |= self.contract.marked(ctx, self.step, name)
        update[ITEMS] = {
            name: {"status": "completed", "result": results[name]}
            if name in results
            else {"status": "failed", "error": "left out by a human"}
            for name in items
        }
        output = {"result": result, "hint": None}
        return await self.contract.branch(ctx, self.step, output), update

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


def _item_name(item: Any, index: int) -> str:
    """Returns the name of an item: its position, and its own id, name or text if it has one."""
    if isinstance(item, str) and item and len(item) <= 60:
        return f"{index}:{item}"
    if isinstance(item, Mapping):
        for key in ("id", "name", "key"):
            if isinstance(item.get(key), str | int):
                return f"{index}:{item[key]}"
    return str(index)
