"""Reads a reply that is YAML where JSON was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.review.fields import Unreadable

LONGEST = 200_000
"""Characters; reading more would take longer than asking again."""


def read_yaml(text: str) -> Mapping[str, Any]:
    """Returns the one mapping a text holds, fenced or not; raises `Unreadable`."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    body = _body(text)
    try:
        value = YAML(typ="safe", pure=True).load(body)
        str(value)  # a number that Python refuses to print could not be shown to anyone
    except (YAMLError, ValueError, RecursionError) as error:
        raise Unreadable("it is neither a JSON object nor YAML") from error
    if not isinstance(value, Mapping):
        raise Unreadable("it is not a JSON object" if body.strip() else "it is empty")
    return value


def _body(text: str) -> str:
    if len(text) > LONGEST:
        raise Unreadable("there is no JSON object in it")
    lines = text.split("\n")
    fences = [at for at, line in enumerate(lines) if line.startswith("```")]
    if not fences:
        return text
    if len(fences) != 2:
        raise Unreadable("it must hold exactly one fenced block, whole")
    return "\n".join(lines[fences[0] + 1 : fences[1]])
