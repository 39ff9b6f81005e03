"""The items of a step: their names, and how far each of them is while the step is under way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from signoff.contracts.model import MAX_RETRIES, ParallelItemResult
from signoff.core.run_state import EffectRecord, RunState

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
