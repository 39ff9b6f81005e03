"""Writes and reads JSON with large strings stored separately, as blobs.

A long text (an artifact, a prompt, a reply) is stored once, by its digest, however many
events mention it. In the JSON it is `{"$blob": digest}`; a dict of the user's that has
such a key is wrapped in `{"$is": ...}`, so no text from outside can pass for a reference.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from enum import StrEnum
from operator import is_
from types import NoneType
from typing import Any

import orjson

from signoff.core.digest import text_digest
from signoff.core.errors import NotSerialisable, StoreDamaged
from signoff.core.frozen import DEPTH, STORED_DEPTH, FrozenDict, FrozenList, as_key

BLOB_FROM = 6000
"""Characters from which a string becomes a blob; shorter ones cost less in the row itself."""

Blobs = dict[str, str]
"""Texts that are stored separately, by digest."""

_SHORT = frozenset({int, bool, NoneType})
_LONG, _OTHER = 1, 2
"""What a value may contain: a text that becomes a blob, something that is not plain."""
_PLAIN = frozenset({str, int, bool, NoneType})
_PLAIN_NESTS = frozenset({dict, list, tuple, FrozenDict, FrozenList})
_NESTS = (dict, list, tuple)
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_escaping = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def encode(value: Any, blobs: Blobs, levels: int = STORED_DEPTH) -> str:
    """Returns the JSON text of a value; long strings are put into `blobs`."""
    try:
        found = _check(value, levels)
        plain = not found & _OTHER
        text = _text(value, plain)
        # Only a value with a long text, or one that looks like a reference, has to be walked again.
        if '"$' in text or found & _LONG:
            lifted = _lift(value, blobs)
            if lifted is not value:
                return _text(lifted, plain)
        return text
    except (TypeError, ValueError) as error:
        raise NotSerialisable(
            f"a value cannot be stored ({error}); use strings, numbers, booleans, None, "
            "lists and dicts with string keys"
        ) from error


def decode(text: str, blob: Callable[[str], str]) -> Any:
    """Reads a value back; `blob` returns a separately stored text by its digest."""
    try:
        if '"$' not in text:
            return json.loads(text)
        if '"$is"' in text:
            return _lower(json.loads(text), blob)
        # Without wrapped dicts, references can be replaced while the text is parsed. That visits
        # dicts only, and in a long journal most values are none.
        return json.loads(text, object_hook=lambda value: _resolve(value, blob))
    except (ValueError, RecursionError) as error:
        raise StoreDamaged(f"a stored value is not readable: {error}") from error


def _resolve(value: dict[str, Any], blob: Callable[[str], str]) -> Any:
    if len(value) == 1 and isinstance(key := value.get("$blob"), str):
        return blob(key)
    return value


def _check(value: Any, levels: int) -> int:
    """Refuses what JSON would silently change; returns whether there is a long text, or more.

    Every JSON library writes plain values alike. They differ in the rest: some accept a UUID or
    an infinite number, which could not be read back.
    """
    if not isinstance(value, _NESTS):
        return _check_scalar(value)
    if not levels:
        raise NotSerialisable(f"a value is nested more than {DEPTH} levels deep, or in itself")
    found = 0 if type(value) in _PLAIN_NESTS else _OTHER
    if isinstance(value, dict):
        _check_keys(value)
        value = value.values()
    for each in value:
        # Most values are short texts. Checking their length here saves a call for each of them.
        short = len(each) < BLOB_FROM if type(each) is str else type(each) in _SHORT
        if not short:
            found |= _check(each, levels - 1)
    return found


def _check_keys(value: dict[Any, Any]) -> None:
    for key in value:
        if type(key) is not str:
            as_key(key)


def _check_scalar(value: Any) -> int:
    long = _LONG if isinstance(value, str) and len(value) >= BLOB_FROM else 0
    if type(value) is float:
        plain = math.isfinite(value)
    else:
        plain = type(value) in _PLAIN or isinstance(value, StrEnum)
    return long if plain else long | _OTHER


def _text(value: Any, plain: bool) -> str:
    """Returns the JSON text of a value that was checked."""
    if plain:
        try:
            return orjson.dumps(value).decode()
        except TypeError:
            pass  # a number beyond 64 bits or half a character, which only `json` can write
    text = _encoder.encode(value)
    # Half of a surrogate pair, as a cut-off emoji leaves behind, is only storable escaped.
    return text if _is_storable(text) else _escaping.encode(value)


def _is_storable(text: str) -> bool:
    """Tells whether a text can be stored as UTF-8."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _lift(value: Any, blobs: Blobs) -> Any:
    if isinstance(value, str):
        # PostgreSQL stores no NUL, which models write now and then. In JSON it is escaped.
        if len(value) < BLOB_FROM or "\x00" in value or not _is_storable(value):
            return value
        key = text_digest(value)
        blobs[key] = value
        return {"$blob": key}
    # Most values are short texts. Checking their length here saves a call for each of them.
    if isinstance(value, dict):
        lifted = {
            k: v
            if type(v) in _SHORT or (type(v) is str and len(v) < BLOB_FROM)
            else _lift(v, blobs)
            for k, v in value.items()
        }
        # A dict of the user's that looks like a reference is wrapped, so that reading it back gives
        # this dict and never a text of somebody else's.
        if "$blob" in value or "$is" in value:
            return {"$is": lifted}
        return value if all(map(is_, lifted.values(), value.values())) else lifted
    if isinstance(value, list | tuple):
        items = [
            v if type(v) in _SHORT or (type(v) is str and len(v) < BLOB_FROM) else _lift(v, blobs)
            for v in value
        ]
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
