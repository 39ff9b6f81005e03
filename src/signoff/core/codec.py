"""JSON texts with large strings kept apart.

A long text (an artifact, a prompt, a reply) is stored once, by its digest, however many
events mention it. In the JSON it is `{"$blob": digest}`; a dict of the user's that has
such a key is wrapped in `{"$is": ...}`, so no text from outside can pose as a reference.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from signoff.core.digest import text_digest
from signoff.errors import NotSerialisable, StoreDamaged

BLOB_FROM = 6000
"""Characters from which a string is kept apart; shorter ones cost less in the row itself."""

Blobs = dict[str, str]
"""Texts kept apart, by digest."""

_encoder = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=True
)


def encode(value: Any, blobs: Blobs) -> str:
    """Returns the JSON text of a value; long strings are put into `blobs`."""
    try:
        text = _encoder.encode(value)
        if len(text) < BLOB_FROM and '"$' not in text:
            return text
        return _encoder.encode(_lift(value, blobs))
    except (TypeError, ValueError, RecursionError) as error:
        raise NotSerialisable(
            f"a value cannot be stored ({error}); use strings, numbers, booleans, None, "
            "lists and dicts with string keys"
        ) from error


def decode(text: str, blob: Callable[[str], str]) -> Any:
    """Reads a value back; `blob` looks kept-apart texts up by digest."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise StoreDamaged(f"a stored value is not JSON: {error}") from error
    return _lower(value, blob) if '"$' in text else value


def _lift(value: Any, blobs: Blobs) -> Any:
    if isinstance(value, str):
        if len(value) < BLOB_FROM:
            return value
        key = text_digest(value)
        blobs[key] = value
        return {"$blob": key}
    if isinstance(value, dict):
        lifted = {k: _lift(v, blobs) for k, v in value.items()}
        return {"$is": lifted} if "$blob" in value or "$is" in value else lifted
    if isinstance(value, list | tuple):
        return [_lift(v, blobs) for v in value]
    return value


def _lower(value: Any, blob: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        if len(value) == 1 and "$blob" in value:
            return blob(value["$blob"])
        inner = value["$is"] if len(value) == 1 and "$is" in value else value
        return {k: _lower(v, blob) for k, v in inner.items()}
    if isinstance(value, list):
        return [_lower(v, blob) for v in value]
    return value
