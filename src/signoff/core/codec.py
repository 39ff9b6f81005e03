"""JSON texts with large strings kept apart.

A long text (an artifact, a prompt, a reply) is stored once, by its digest, however many
events mention it. In the JSON it is `{"$blob": digest}`; a dict of the user's that has
such a key is wrapped in `{"$is": ...}`, so no text from outside can pose as a reference.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from operator import is_
from types import NoneType
from typing import Any

from signoff.core.digest import text_digest
from signoff.core.frozen import DEPTH, STORED_DEPTH, as_key
from signoff.errors import NotSerialisable, StoreDamaged

BLOB_FROM = 6000
"""Characters from which a string is kept apart; shorter ones cost less in the row itself."""

Blobs = dict[str, str]
"""Texts kept apart, by digest."""

_SCALARS = frozenset({str, int, float, bool, NoneType})
_NESTS = (dict, list, tuple)
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_escaping = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def encode(value: Any, blobs: Blobs, levels: int = STORED_DEPTH) -> str:
    """Returns the JSON text of a value; long strings are put into `blobs`."""
    try:
        like_ours = _check(value, levels)
        text = _encoder.encode(value)
        if like_ours or len(text) >= BLOB_FROM:
            lifted = _lift(value, blobs)
            if lifted is not value:
                value, text = lifted, _encoder.encode(lifted)
        # Half of a surrogate pair, as a cut-off emoji leaves behind, is only storable escaped.
        return text if _is_storable(text) else _escaping.encode(value)
    except (TypeError, ValueError) as error:
        raise NotSerialisable(
            f"a value cannot be stored ({error}); use strings, numbers, booleans, None, "
            "lists and dicts with string keys"
        ) from error


def decode(text: str, blob: Callable[[str], str]) -> Any:
    """Reads a value back; `blob` looks kept-apart texts up by digest."""
    try:
        value = json.loads(text)
        return _lower(value, blob) if '"$' in text else value
    except (ValueError, RecursionError) as error:
        raise StoreDamaged(f"a stored value is not readable: {error}") from error


def _check(value: Any, levels: int) -> bool:
    """Refuses what JSON would change without a word, and tells whether any key looks like ours."""
    if not isinstance(value, _NESTS):
        return False
    if not levels:
        raise NotSerialisable(f"a value is nested more than {DEPTH} levels deep, or in itself")
    found = False
    if isinstance(value, dict):
        for key in value:
            if type(key) is not str:
                as_key(key)
        found = "$blob" in value or "$is" in value
        value = value.values()
    for each in value:
        if type(each) not in _SCALARS and _check(each, levels - 1):
            found = True
    return found


def _is_storable(text: str) -> bool:
    """Tells whether a text column can hold it as it is."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _lift(value: Any, blobs: Blobs) -> Any:
    if isinstance(value, str):
        if len(value) < BLOB_FROM or not _is_storable(value):
            return value
        key = text_digest(value)
        blobs[key] = value
        return {"$blob": key}
    if isinstance(value, dict):
        lifted = {k: _lift(v, blobs) for k, v in value.items()}
        if "$blob" in value or "$is" in value:
            return {"$is": lifted}
        return value if all(map(is_, lifted.values(), value.values())) else lifted
    if isinstance(value, list | tuple):
        items = [_lift(v, blobs) for v in value]
        return value if all(map(is_, items, value)) else items
    return value


def _lower(value: Any, blob: Callable[[str], str]) -> Any:
    match value:
        case {"$blob": str(key)} if len(value) == 1:
            return blob(key)
        case {"$is": dict(inner)} if len(value) == 1:
            return {k: _lower(v, blob) for k, v in inner.items()}
        case dict():
            return {k: _lower(v, blob) for k, v in value.items()}
        case list():
            return [_lower(v, blob) for v in value]
        case _:
            return value
