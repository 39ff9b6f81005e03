"""Reads replies in YAML from judges that were asked for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.review.fields import Unreadable

LONGEST = 200_000
"""Characters; parsing more would take longer than asking again."""


def read_yaml(text: str) -> Mapping[str, Any]:
    """Returns the single mapping in a text, fenced or not; raises `Unreadable`."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    body = _body(text)
    try:
        value = YAML(typ="safe", pure=True).load(body)
        # Python refuses to print numbers of thousands of digits, so such a reply would fail later.
        str(value)
    except (YAMLError, ValueError, RecursionError) as error:
        raise Unreadable("it is neither a JSON object nor YAML") from error
    if not isinstance(value, Mapping):
        raise Unreadable("it is not a JSON object" if body.strip() else "it is empty")
    return value


def _body(text: str) -> str:
    if len(text) > LONGEST:
        raise Unreadable("it contains no JSON object")
    lines = text.split("\n")
    fences = [index for index, line in enumerate(lines) if line.startswith("```")]
    if not fences:
        return text
    if len(fences) != 2:
        raise Unreadable("it must contain exactly one complete fenced block")
    return "\n".join(lines[fences[0] + 1 : fences[1]])
