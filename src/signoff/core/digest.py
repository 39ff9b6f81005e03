"""Digests: of values, of what was shown to a person, and of a whole definition.

A definition's digest covers structure and the code of its handlers, so a run is
never silently continued with other rules than it was started with. Comments and
formatting do not count.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import orjson

from signoff.errors import NotSerialisable

# Nearly every command needs the digest of a text, few need that of a definition: what only the
# latter uses is imported where it is used.
if TYPE_CHECKING:
    from signoff.core.step import Condition, Edge, Gate, StepDef
    from signoff.core.workflow import Workflow

SHORT = 12
"""Characters of a digest that people are shown."""

_TEXTS = frozenset({str})
_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(value: Any) -> str:
    """Returns the sha256 of a JSON value in canonical form."""
    if type(value) is dict and _TEXTS.issuperset(map(type, value.values())):
        # Nothing but texts, as in most calls: every JSON library writes them alike.
        try:
            return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()
        except TypeError:
            pass  # half a character, or a key that is no text
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


def describe(workflow: Workflow) -> dict[str, Any]:
    """Returns a workflow as plain data: what is frozen with a run."""
    return {
        "name": workflow.name,
        "entry_point": workflow.entry_point,
        "notation": workflow.notation,
        "max_iterations": workflow.max_iterations,
        "limits": workflow.limits.to_json(),
        "source": dict(workflow.source),
        "steps": [_describe_step(step) for step in workflow.steps.values()],
    }


def _describe_step(step: StepDef) -> dict[str, Any]:
    from signoff.core.edges import declared_edges

    return {
        "id": step.id,
        "title": step.title,
        "actions": list(map(str, step.actions)),
        "handler": _describe_handler(step.handler),
        "next": {name: _describe_edge(edge) for name, edge in declared_edges(step)},
        "phase": step.phase,
        "preconditions": [_describe_condition(c) for c in step.preconditions],
        "postconditions": [
            # A notation whose source describes its conditions has them in the digest already.
            _describe_condition(c)
            for c in step.postconditions
            if not _in_source(c)
        ],
        "retries": step.retries,
        "timeout": step.timeout,
        "limits": step.limits.to_json(),
        "gate": _describe_gate(step.gate),
    }


def _describe_edge(edge: Edge) -> list[Any]:
    return [edge.to, edge.bound, edge.starts_iteration, edge.on_limit, edge.resets]


def _describe_gate(gate: Gate | None) -> list[Any] | None:
    """Says what its edges do not: what a person is shown and must write."""
    if gate is None:
        return None
    explained = [o.label for o in gate.options if o.requires_input]
    return [gate.prompt, list(gate.context), explained]


def _in_source(condition: Condition) -> bool:
    return getattr(condition.check, "in_source", False) is True


def _describe_condition(condition: Condition) -> list[str]:
    return [condition.name, condition.error, _code(condition.check)]


def _describe_handler(handler: Any) -> Any:
    if handler is None:
        return None
    if callable(handler):
        return _code(handler)
    return [str(handler.agent), handler.script, dict(handler.context_vars), handler.free_form]


def _code(function: Callable[..., Any]) -> str:
    """Identifies a function; its code is digested, since it may hold what is nobody's business."""
    from signoff.core.code import describe_code, name_of

    return f"{name_of(function)}:{digest(describe_code(function))}"
