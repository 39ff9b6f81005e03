"""Reads structured answers strictly: by schema, repairing slips of syntax and nothing more.

An answer that was cut off is never repaired: half a critique must not become a pass.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from signoff.agents.lenient_json import NotJson, load, unfenced
from signoff.documents import bounded
from signoff.errors import AgentBadOutput

MOST_PROBLEMS = 20
"""What is reported of an answer that does not fit its schema."""


def parse_answer(text: str, schema: Mapping[str, Any]) -> Any:
    """Returns the JSON value an answer holds, checked against its schema.

    Raises `AgentBadOutput` saying what is wrong in words the agent can act on.
    """
    value = _load(text)
    problems = schema_problems(value, schema)
    if problems:
        listed = "; ".join(problems[:MOST_PROBLEMS])
        raise AgentBadOutput(f"the answer does not fit its schema: {listed}", answer=text)
    return value


def schema_problems(value: Any, schema: Mapping[str, Any]) -> list[str]:
    """Returns what keeps a value from fitting a schema, each with its place."""
    try:
        found = bounded.schema_errors(value, dict(schema))
    except (bounded.OutOfBounds, bounded.EvaluationFailed) as error:
        return [f"the patterns of the schema cannot be checked: {error}"]
    return [f"{_place(path)}: {message}" for path, message in found]


def instruction(schema: Mapping[str, Any]) -> str:
    """Returns what to add to a prompt for an agent that cannot be held to a schema."""
    return (
        "Answer with one JSON value that fits this JSON Schema, and with nothing else:\n"
        + json.dumps(dict(schema), indent=1)
    )


def _load(text: str) -> Any:
    body = unfenced(text)
    if not body:
        raise AgentBadOutput("the answer is empty")
    try:
        return load(body)
    except NotJson as error:
        raise AgentBadOutput(f"the answer cannot be read: {error}", answer=text) from error


def _place(path: Any) -> str:
    return "/".join(map(str, path)) or "the answer"
