"""Digests of values, of what an approver sees, and of a whole definition.

A definition's digest covers its structure and the code of its handlers, so a run never silently
continues with other rules than it was started with. Comments and formatting do not count.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from signoff.core.errors import NotSerialisable

# Nearly every command needs the digest of a text, few need that of a definition: what only the
# latter uses is imported where it is used.
if TYPE_CHECKING:
    from signoff.core.step import Condition, Gate, StepDef
    from signoff.core.workflow import Workflow

SHORT = 12
"""Characters of a digest that humans see."""

_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(value: Any) -> str:
    """Returns the sha256 of a JSON value in canonical form."""
    try:
        text = _canonical.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotSerialisable(
            f"a value has no digest ({error}); use strings, numbers, booleans, None, lists and "
            "dicts with string keys"
        ) from error
    return text_digest(text)


def text_digest(text: str) -> str:
    """Returns the sha256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def line_digest(line: str) -> str:
    """Returns what identifies a line of a log; short, because a run keeps one for each line."""
    return text_digest(line)[:16]


def describe(workflow: Workflow) -> dict[str, Any]:
    """Returns a workflow as plain data, as it is stored with each run."""
    from signoff.core.args import param_to_json

    return {
        "name": workflow.name,
        "entry_point": workflow.entry_point,
        "notation": workflow.notation,
        "max_iterations": workflow.max_iterations,
        "limits": workflow.limits.to_json(),
        "source": dict(workflow.source),
        "steps": [_describe_step(step) for step in workflow.steps.values()],
        "inputs": [param_to_json(param) for param in workflow.input_params.values()],
    }


def _describe_step(step: StepDef) -> dict[str, Any]:
    from signoff.core.edges import declared_edges

    return {
        "id": step.id,
        "title": step.title,
        "actions": list(map(str, step.actions)),
        "handler": _describe_handler(step.handler),
        "next": {
            name: [
                edge.to,
                edge.bound,
                edge.starts_iteration,
                edge.grants_iteration,
                edge.on_limit,
                edge.resets,
            ]
            for name, edge in declared_edges(step)
        },
        "phase": step.phase,
        "preconditions": [_describe_condition(c) for c in step.preconditions],
        "postconditions": [_describe_condition(c) for c in step.postconditions],
        "retries": step.retries,
        "timeout": step.timeout,
        "limits": step.limits.to_json(),
        "gate": _describe_gate(step.gate),
        "edits": step.edits,
    }


def _describe_gate(gate: Gate | None) -> list[Any] | None:
    """Describes what the edges of a gate do not: what a human sees and has to write."""
    if gate is None:
        return None
    explained = [o.label for o in gate.options if o.requires_input]
    return [gate.prompt, list(gate.context), explained, gate.presence]


def _describe_condition(condition: Condition) -> list[str]:
    return [condition.name, condition.error, _code(condition.check)]


def _describe_handler(handler: Any) -> Any:
    if handler is None:
        return None
    if callable(handler):
        return _code(handler)
    return handler.describe()


def _code(function: Callable[..., Any]) -> str:
    """Identifies a function by name and digest; its source may contain secrets."""
    # The code is digested and never stored: a definition is shown to users and exported.
    from signoff.core.code import describe_code, name_of

    # A compiled handler brings its own definition: the name of its class is signoff's.
    name = "" if getattr(function, "definition", None) is not None else name_of(function)
    return f"{name}:{digest(describe_code(function))}"
