"""Reads fields of vendors' JSON that may be missing or of another type.

Vendors change their formats without notice. A field of an unexpected type is read as empty, so
that such a change does not end a run with a TypeError.
"""

from __future__ import annotations

from typing import Any


def as_dict(value: object) -> dict[str, Any]:
    """Returns a JSON object, or an empty one for any other value."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """Returns a JSON array, or an empty one for any other value."""
    return value if isinstance(value, list) else []


def as_text(value: object) -> str:
    """Returns a JSON string, or an empty one for any other value."""
    return value if isinstance(value, str) else ""


def token_count(count: object) -> int | None:
    """Returns a reported token count; servers that do not count send nothing, or 0."""
    counted = isinstance(count, int) and not isinstance(count, bool) and count > 0
    return count if counted else None  # type: ignore[return-value]  # an int, by the line above


def cached_count(count: object) -> int | None:
    """Returns a reported count of cached tokens; 0 means that nothing was cached."""
    return 0 if count == 0 and isinstance(count, int) else token_count(count)
