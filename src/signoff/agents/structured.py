"""Reads structured answers strictly: by schema, repairing slips of syntax and nothing more.

An answer that was cut off is never repaired: half a critique must not become a pass.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from signoff.errors import AgentBadOutput

_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)\n?```", re.DOTALL | re.IGNORECASE)


def parse_answer(text: str, schema: Mapping[str, Any]) -> Any:
    """Returns the JSON value an answer holds, checked against its schema.

    Raises `AgentBadOutput` saying what is wrong in words the agent can act on.
    """
    value = _load(text)
    problems = schema_problems(value, schema)
    if problems:
        raise AgentBadOutput("the answer does not fit its schema: " + "; ".join(problems[:5]))
    return value


def schema_problems(value: Any, schema: Mapping[str, Any]) -> list[str]:
    """Returns what keeps a value from fitting a schema, each with its place."""
    from jsonschema import Draft202012Validator

    found = sorted(Draft202012Validator(dict(schema)).iter_errors(value), key=str)
    return [f"{_place(error.absolute_path)}: {error.message}" for error in found]


def instruction(schema: Mapping[str, Any]) -> str:
    """Returns what to add to a prompt for an agent that cannot be held to a schema."""
    return (
        "Answer with one JSON value that fits this JSON Schema, and with nothing else:\n"
        + json.dumps(dict(schema), indent=1)
    )


def _load(text: str) -> Any:
    body = _body(text)
    try:
        return json.loads(body)
    except ValueError as error:
        return _repaired(body, error)


def _body(text: str) -> str:
    """Takes the answer out of its code fence, when it is the only one."""
    stripped = text.strip()
    fenced = _FENCE.findall(stripped)
    return fenced[0].strip() if len(fenced) == 1 else stripped


def _repaired(body: str, error: ValueError) -> Any:
    if not body:
        raise AgentBadOutput("the answer is empty") from error
    if body[0] not in "{[" or body[-1] != {"{": "}", "[": "]"}[body[0]]:
        raise AgentBadOutput(f"the answer is not JSON, or was cut off: {error}") from error
    from json_repair import repair_json

    repaired = repair_json(body, return_objects=True)
    if type(repaired) is not ({"{": dict, "[": list}[body[0]]):
        raise AgentBadOutput(f"the answer is not JSON: {error}") from error
    return repaired


def _place(path: Any) -> str:
    return "/".join(map(str, path)) or "the answer"
