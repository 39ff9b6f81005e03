"""Digests of values and texts; what an approver sees and what a run is started with have one."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from signoff.core.errors import NotSerialisable

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
