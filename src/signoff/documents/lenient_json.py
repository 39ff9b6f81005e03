"""Parses JSON that a model wrote: repairs punctuation, but never changes words.

Truncated output stays broken and duplicate keys are refused: a guess about either could
turn half a critique into a pass.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

MAX_DEPTH = 64
"""Nested brackets; no answer that signoff asks for needs more."""
MAX_REPAIRED_CHARACTERS = 100_000
"""Repairing takes much longer than parsing."""

# A whole string, or a bracket: nothing else decides where a value ends.
_PIECE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|["{}\[\]]', re.DOTALL)
_FENCE = "```"
_CLOSES = {"{": "}", "[": "]"}
# Braces in prose and templates, such as {name}, do not start an object.
_OBJECT = re.compile(r"\{(?=\s*[\"'}])")
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})|\\[bfnrt]")
_COMMENT = re.compile(r"^[ \t]*(?://|#).*$", re.MULTILINE)
# A field name inside a string means that the repair merged two fields.
_ABSORBED = re.compile(r"""(?:\\"|')\s*:""")
_WORD = re.compile(r"[^\W\d_]+")
_PYTHON = {"none": "null"}

MAX_DIGITS = 1_000
"""Digits of a whole number; Python refuses to parse and print much longer ones."""


class NotJson(ValueError):  # noqa: N818  # named for what the text is
    """The text is not a JSON value; the message tells its author why."""


def find_objects(text: str) -> Iterator[tuple[int, int]]:
    """Yields the start and end of every outermost JSON object, ignoring prose and code fences.

    Raises `NotJson` for an object that never ends.
    """
    position = 0
    while opening := _OBJECT.search(text, position):
        position = find_end(text, opening.start())
        yield opening.start(), position


def find_end(text: str, start: int) -> int:
    """Returns the end of the value whose bracket opens at `start`; raises `NotJson` if none."""
    closing: list[str] = []
    for piece in _PIECE.finditer(text, start):
        mark = piece.group()
        if mark in _CLOSES:
            closing.append(_CLOSES[mark])
        elif mark in "]}" and closing.pop() != mark:
            raise NotJson("its brackets do not match")
        elif mark == '"':
            break
        if not closing:
            return piece.end()
        if len(closing) > MAX_DEPTH:
            raise NotJson("its brackets are nested too deeply")
    raise NotJson("it was cut off: it never ends")


def find_closed_objects(text: str) -> Iterator[tuple[int, int]]:
    """Yields the start and end of every object that is whole, inner ones before outer ones.

    Unlike `find_objects`, it finds what is inside an object that never ends.
    """
    first = _OBJECT.search(text)
    opened: list[tuple[str, int]] = []
    for piece in _PIECE.finditer(text, first.start()) if first is not None else ():
        mark = piece.group()
        if mark in _CLOSES:
            opened.append((_CLOSES[mark], piece.start()))
        elif mark in "]}":
            closing, start = opened.pop() if opened else ("", 0)
            if closing == mark == "}":
                yield start, piece.end()
        # After a quotation mark without a partner, words and brackets cannot be told apart. The
        # bound on depth keeps the text of all these objects together linear.
        if mark == '"' or len(opened) > MAX_DEPTH:
            return


def strip_code_fence(text: str) -> str:
    """Returns a text without the single code fence around its JSON, or unchanged."""
    stripped = text.strip()
    is_fenced = stripped.startswith(_FENCE) and stripped.endswith(_FENCE)
    start, end = stripped.find(_FENCE), stripped.rfind(_FENCE)
    if not (is_fenced or stripped.count(_FENCE) == 2) or start == end:
        return stripped
    language, newline, inside = stripped[start + len(_FENCE) : end].partition("\n")
    is_json = language.strip().lower() in ("", "json")
    return inside.strip() if newline and is_json else stripped


def load(body: str) -> Any:
    """Returns the value of a JSON text, with its syntax repaired; raises `NotJson`."""
    try:
        return load_strict(body, strict=False)
    except NotJson:
        raise
    except ValueError as error:
        return _repair(body, error)


def load_strict(body: str, *, strict: bool = True) -> Any:
    """Returns the value of a JSON text as it is; raises `ValueError`, or `NotJson` for a value.

    What no journal can store is refused: endless and missing numbers, and duplicate keys.
    """
    try:
        return json.loads(
            body,
            object_pairs_hook=_unique_keys,
            parse_int=_parse_int,
            parse_float=_parse_float,
            parse_constant=_parse_float,
            strict=strict,
        )
    except RecursionError as error:
        raise NotJson("its brackets are nested too deeply") from error


def _parse_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise NotJson(f"{text[:20]} in it is not a finite number")
    return number


def _parse_int(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise NotJson(f"a number in it has {len(digits):,} digits; at most {MAX_DIGITS:,}")
    return int(digits)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        names = [name for name, _ in pairs]
        duplicate = next(name for name in names if names.count(name) > 1)
        raise NotJson(f"the key {duplicate[:60]!r} appears twice in one object")
    return value


def _repair(body: str, error: ValueError) -> Any:
    if body[:1] not in _CLOSES:
        raise NotJson(f"it is not JSON: {error}") from error
    # The repair library closes open brackets, so truncated texts are refused before it runs.
    if find_end(body, 0) != len(body):
        raise NotJson("there is more text after its end") from error
    if len(body) > MAX_REPAIRED_CHARACTERS:
        raise NotJson(f"it is not JSON, and too long to repair: {error}") from error
    from json_repair import repair_json

    try:
        repaired = repair_json(body, return_objects=True)
    except (ValueError, RecursionError):
        raise NotJson(f"it is not JSON: {error}") from error
    if type(repaired) is not {"{": dict, "[": list}[body[0]] or not _same_words(body, repaired):
        raise NotJson(f"it is not JSON: {error}") from error
    return repaired


def _same_words(body: str, repaired: Any) -> bool:
    """Returns whether a repair changed only punctuation: a lost word might be a finding."""
    written = json.dumps(repaired, ensure_ascii=False)
    return not _ABSORBED.search(written) and _words(_COMMENT.sub("", body)) == _words(written)


def _words(text: str) -> list[str]:
    plain = _ESCAPED.sub(lambda match: chr(int(match[1], 16)) if match[1] else " ", text)
    words = _WORD.findall(plain.lower())
    return [_PYTHON.get(word, word) for word in words]
