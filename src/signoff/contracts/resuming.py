"""How far a run and the items of its step are, for the program or the human that resumes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from signoff.contracts.checkpoint import Checkpoint, checkpoint_of, named_value
from signoff.contracts.model import MAX_RETRIES, ParallelItemResult, PendingRetry
from signoff.core.run_state import EffectRecord, RunState, Stage

if TYPE_CHECKING:
    from signoff.notation import RunSnapshot


SHOWN = 5
"""How many failed items a human is shown."""

_AT_WORK = (Stage.ENTER, Stage.WORK, Stage.CHECK)
"""The stages of an attempt; after them a human is asked, or the step is done."""


@dataclass(frozen=True)
class ResumeContext:
    """The position of a run, its last output, and what failed."""

    workflow_type: str
    run_id: str
    current_step: str
    completed_steps: tuple[str, ...]
    last_step_output: Any = None
    pending_retry: PendingRetry | None = None
    """The attempt that the run continues with, if the one before it failed."""
    parallel_status: Mapping[str, Any] | None = None
    """The number of items, the number of completed ones, and the names of the failed ones."""
    parallel_results: Mapping[str, ParallelItemResult] | None = None
    """The items one by one, each with its error."""

    @property
    def is_retry(self) -> bool:
        """Whether it continues with another attempt at a step whose last attempt failed."""
        return self.pending_retry is not None

    @property
    def lines(self) -> list[str]:
        """What a human should know before the run continues."""
        lines: list[str] = []
        if retry := self.pending_retry:
            what = f"step {retry.step!r} continues with attempt {retry.attempt}"
            lines.append(f"{what}; the last one failed: {retry.error}")
        status = self.parallel_status
        if status and status["completed"] < status["total"]:
            lines.append(f"items: {status['completed']} of {status['total']} completed")
        failed = {n: e for n, e in (self.parallel_results or {}).items() if e.error}
        lines += [
            f"item {name} ({each.status}, failed attempts: {each.retry_count}): {each.error}"
            for name, each in list(failed.items())[:SHOWN]
        ]
        if len(failed) > SHOWN:
            lines.append(f"and {len(failed) - SHOWN} more with errors")
        return lines

    @property
    def facts(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return asdict(self)


def resume_context(run: RunSnapshot) -> ResumeContext:
    """Returns the summary of a run."""
    point = current_checkpoint(run)
    done, items = point.completed_steps, point.parallel_results
    failed = [name for name, each in items.items() if each.status == "failed"]
    completed = sum(each.status == "completed" for each in items.values())
    status = {"total": len(items), "completed": completed, "failed": failed}
    return ResumeContext(
        workflow_type=point.workflow_type,
        run_id=point.workflow_run_id,
        current_step=point.current_step,
        completed_steps=tuple(each.step for each in done),
        last_step_output=done[-1].result if done else None,
        pending_retry=point.pending_retry,
        parallel_status=status if items else None,
        parallel_results=items or None,
    )


def current_checkpoint(run: RunSnapshot) -> Checkpoint:
    """Returns the checkpoint of a run with the state of the step that is under way."""
    state, step = run.state, run.state.step or ""
    attempt = state.attempt - state.replaced
    retry = None
    if attempt > 1 and state.stage in _AT_WORK and state.pending is None:
        retry = PendingRetry(step, state.feedback or "", attempt)
    point = checkpoint_of(run.name, state.workflow, step, state.state_with_pending, retry)
    items = _items(run, point)
    return replace(point, parallel_results=items) if items else point


def _items(run: RunSnapshot, point: Checkpoint) -> dict[str, ParallelItemResult]:
    """Returns the items of the current step; empty if it has none."""
    if run.state.pending is not None or not has_items(run.state):
        # Before its items begin, those of an earlier visit are the last ones.
        return {}
    # Steps that run together are items of one fan-out, each under its own name.
    names = point.current_step.split("+")
    if len(names) > 1:
        return item_states(names, run.state)
    steps = run.description.get("source", {}).get("contract", {}).get("steps", ())
    keys = [each["items"] for each in steps if each["name"] == point.current_step]
    found = named_value(point, run.state.params, keys[0]) if keys and keys[0] else None
    return item_states(list(item_names(found)), run.state) if isinstance(found, list) else {}


# The items of a step: their names, and how far each of them is while the step is under way.


ITEM_KEY = "items"
"""The key of the fan-out of a step."""

RETRIES = "retries"
"""How often an item was retried, next to its result; missing if it was not."""


def item_names(items: Sequence[Any]) -> dict[str, Any]:
    """Returns items by name."""
    return {_name(item, index): item for index, item in enumerate(items)}


def _name(item: Any, index: int) -> str:
    """Returns the name of an item: its position, and its own id, name or text if it has one."""
    # The position comes first, because two items may have the same id and each needs a marker of
    # its own in the database.
    if isinstance(item, str) and item and len(item) <= 60:
        return f"{index}:{item}"
    if isinstance(item, Mapping):
        for key in ("id", "name", "key"):
            if isinstance(item.get(key), str | int):
                return f"{index}:{item[key]}"
    return str(index)


def item_states(names: Sequence[str], state: RunState) -> dict[str, ParallelItemResult]:
    """Returns how far the items of the current step are.

    Items that failed are tried again in another fan-out with the same key when a human says so.
    """
    states = dict.fromkeys(names, ParallelItemResult("pending"))
    remaining = list(names)
    for identity, record in _rounds(state):
        failed: list[str] = []
        for index, name in enumerate(remaining):
            before = states[name]
            states[name] = now = _item_state(state, record, f"{identity}[{index}]", index, before)
            if now.status == "failed":
                failed.append(name)
        remaining = failed
    return states


def has_items(state: RunState) -> bool:
    """Whether the items of the current step have begun."""
    return any(_rounds(state))


def _rounds(state: RunState) -> Iterator[tuple[str, EffectRecord]]:
    records = state.effects.get("", {})
    number = 1
    # Each retry that a human asks for is another fan-out with the same key. It has the failed items
    # only, so their positions begin at 0 again.
    while (record := records.get(f"{ITEM_KEY}#{number}")) is not None:
        yield f"{ITEM_KEY}#{number}", record
        number += 1


def _item_state(
    state: RunState, record: EffectRecord, scope: str, index: int, before: ParallelItemResult
) -> ParallelItemResult:
    if scope in state.items:
        done = state.items[scope]
        output = done if isinstance(done, Mapping) else {"result": done}
        retries = output.get(RETRIES, before.retry_count)
        return ParallelItemResult("completed", output.get("result"), retry_count=retries)
    problems = state.item_failures.get(scope, [])
    raised = ((record.error or {}).get("failures") or {}).get(str(index))
    retries = before.retry_count + len(problems)
    if raised is not None or len(problems) > MAX_RETRIES:
        # An attempt that could not be judged failed as well.
        failures = max(retries, before.retry_count + 1)
        return ParallelItemResult("failed", error=raised or problems[-1], retry_count=failures)
    error = problems[-1] if problems else before.error
    return ParallelItemResult("pending", error=error, retry_count=retries)
