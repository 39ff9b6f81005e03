"""Words what is wrong with the arguments of a call, for the model that wrote them.

The SDK checks arguments by the tool's schema and reports the validator's own text. A model corrects
a call more reliably if it reads which argument is wrong and what is valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from signoff.documents.control_characters import json_text
from signoff.errors import UnknownName
from signoff.mcp.bounds import line

LONGEST_VALUE = 60
MOST_PROBLEMS = 5
_TYPES = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
}


def unknown_argument(tool: str, names: Iterable[str], schema: Mapping[str, Any]) -> str:
    """Returns what is wrong with the names of arguments; empty if the tool has all of them.

    An argument that is ignored would let a call do something else than was meant.
    """
    known = schema.get("properties", {})
    unknown = [name for name in names if name not in known]
    return str(UnknownName(f"argument of {tool}", unknown[0], known)) if unknown else ""


def wrong_arguments(tool: str, error: ValidationError, schema: Mapping[str, Any]) -> str:
    """Returns what is wrong with the values of arguments, and what would be valid."""
    problems = error.errors(include_url=False, include_context=False)
    # Values that may have one of several types are reported once for each of them.
    by_name = {str(each["loc"][0]) if each["loc"] else "": each for each in problems}
    known = schema.get("properties", {})
    words = [_words(name, each, known.get(name, {})) for name, each in by_name.items()]
    return f"{tool}: {'; '.join(words[:MOST_PROBLEMS])}"


def _words(name: str, problem: ErrorDetails, schema: Mapping[str, Any]) -> str:
    about = schema.get("description", "")
    if problem["type"] == "missing":
        return f"{name} is missing; it is {_expected(schema)}{about and f' ({about})'}"
    value = line(json_text(problem["input"], default=str), LONGEST_VALUE)
    return f"{name} must be {_expected(schema)}, not {value}"


def _expected(schema: Mapping[str, Any]) -> str:
    """Returns a schema in words."""
    if "enum" in schema:
        return f"one of {', '.join(map(str, schema['enum']))}"
    kind = _TYPES.get(schema.get("type", ""), "a value")
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f"{kind} from {low:g} to {high:g}"
    return f"{kind} of at least {low:g}" if low is not None else kind
