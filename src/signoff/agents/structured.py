"""Parses structured answers strictly: by schema, repairing syntax slips and nothing more.

An answer that was cut off is never repaired: half a critique must not become a pass.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from signoff.documents import bounded
from signoff.documents.lenient_json import NotJson, load, strip_code_fence
from signoff.errors import AgentBadOutput

MAX_PROBLEMS = 20
"""How many schema problems of an answer are reported."""

_STRICT_KEYWORDS = frozenset(
    "$defs $ref additionalProperties anyOf const description enum items properties required "
    "title type".split()
)
"""What OpenAI accepts in a schema that it enforces."""


def parse_answer(text: str, schema: Mapping[str, Any]) -> Any:
    """Returns the JSON value of an answer, validated against its schema.

    Raises `AgentBadOutput` with a message that the agent can act on.
    """
    body = strip_code_fence(text)
    if not body:
        raise AgentBadOutput("the answer is empty")
    try:
        value = load(body)
    except NotJson as error:
        raise AgentBadOutput(f"the answer cannot be parsed: {error}", answer=text) from error
    problems = schema_problems(value, schema)
    if problems:
        listed = "; ".join(problems[:MAX_PROBLEMS])
        raise AgentBadOutput(f"the answer does not match its schema: {listed}", answer=text)
    return value


def schema_problems(value: Any, schema: Mapping[str, Any]) -> list[str]:
    """Returns why a value does not match a schema, each problem with its path."""
    try:
        errors = bounded.schema_errors(value, dict(schema))
    except (bounded.OutOfBounds, bounded.EvaluationFailed) as error:
        return [f"the patterns of the schema cannot be checked: {error}"]
    return [f"{'/'.join(map(str, path)) or 'the answer'}: {message}" for path, message in errors]


def with_schema(prompt: str, schema: Mapping[str, Any] | None) -> str:
    """Returns a prompt that asks for the schema, for agents that cannot enforce one."""
    if schema is None:
        return prompt
    return (
        f"{prompt}\n\nAnswer with a single JSON value that matches this JSON Schema, and with "
        f"nothing else:\n{json.dumps(dict(schema), indent=1)}"
    )


def is_strict(schema: Any) -> bool:
    """Returns whether a schema uses only what OpenAI's strict mode accepts."""
    if isinstance(schema, list):
        return all(map(is_strict, schema))
    if not isinstance(schema, dict):
        return True
    # One unsupported keyword anywhere makes the vendor refuse the whole request.
    if set(schema) - _STRICT_KEYWORDS:
        return False
    properties = schema.get("properties", {})
    if schema.get("type") == "object" or properties:
        closed = schema.get("additionalProperties") is False
        if not closed or set(schema.get("required", [])) != set(properties):
            return False
    inner = [*properties.values(), *schema.get("$defs", {}).values(), *schema.get("anyOf", [])]
    return is_strict([*inner, schema.get("items")])
