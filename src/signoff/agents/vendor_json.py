"""Reads fields of vendors' JSON that may be missing or of another type.

Vendors change their formats without notice. A field of an unexpected type is read as empty, so
that such a change does not end a run with a TypeError.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from signoff.core.spend import amount_of


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
    return cached_count(count) or None


def cached_count(count: object) -> int | None:
    """Returns a reported count of cached tokens; 0 means that nothing was cached."""
    amount = amount_of(count)
    return int(amount) if amount is not None and amount == int(amount) else None


def sum_of_counts(counts: Iterable[object]) -> int | None:
    """Returns the sum of those counts that are reported; None if one of them is impossible."""
    numbers = [cached_count(count) for count in counts if count is not None]
    return None if None in numbers else sum(filter(None, numbers))
