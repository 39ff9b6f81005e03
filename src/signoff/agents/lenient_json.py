"""Reads JSON out of what a model wrote: slips of punctuation are mended, words never change.

What was cut off stays broken, and what says a thing twice is refused: a guess about
either could turn half a critique into a pass.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

DEEPEST = 64
"""Brackets inside each other; an answer that needs more is none of ours."""
MAX_REPAIRED_CHARACTERS = 100_000
"""Characters; mending takes much longer than reading."""

# A whole string, or a bracket. Outside of strings nothing else matters for where a value ends.
_PIECE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|["{}\[\]]', re.DOTALL)
_FENCE = "```"
_CLOSES = {"{": "}", "[": "]"}
# Braces of prose and templates, such as {name}, do not open an object.
_OBJECT = re.compile(r"\{(?=\s*[\"'}])")
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})|\\[bfnrt]")
_COMMENT = re.compile(r"^[ \t]*(?://|#).*$", re.MULTILINE)
# A name of a field inside a string, as it is written once more: the repair ran two fields together.
_ABSORBED = re.compile(r"""(?:\\"|')\s*:""")
_WORD = re.compile(r"[^\W\d_]+")
_PYTHON = {"none": "null"}

MOST_DIGITS = 1_000
"""Of a whole number; Python itself refuses to read and to print much longer ones."""


class NotJson(ValueError):  # noqa: N818  # named for what the text is
    """The text is not one JSON value; the message says why in words its author can act on."""


def find_objects(text: str) -> Iterator[str]:
    """Yields every outermost JSON object of a text, whatever prose and fences are around them.

    Raises `NotJson` for one that never ends.
    """
    at = 0
    while opening := _OBJECT.search(text, at):
        at = find_end(text, opening.start())
        yield text[opening.start() : at]


def find_end(text: str, start: int) -> int:
    """Returns where the value whose bracket opens at `start` ends; raises `NotJson` if nowhere."""
    waiting: list[str] = []
    for piece in _PIECE.finditer(text, start):
        found = piece.group()
        if found in _CLOSES:
            waiting.append(_CLOSES[found])
        elif found in "]}" and waiting.pop() != found:
            raise NotJson("its brackets do not match")
        elif found == '"':
            break
        if not waiting:
            return piece.end()
        if len(waiting) > DEEPEST:
            raise NotJson("its brackets are nested too deeply")
    raise NotJson("it was cut off: it never ends")


def strip_code_fence(text: str) -> str:
    """Returns a text without the one code fence around its JSON, or as it is."""
    stripped = text.strip()
    around = stripped.startswith(_FENCE) and stripped.endswith(_FENCE)
    start, end = stripped.find(_FENCE), stripped.rfind(_FENCE)
    if not (around or stripped.count(_FENCE) == 2) or start == end:
        return stripped
    language, newline, inside = stripped[start + len(_FENCE) : end].partition("\n")
    named = language.strip().lower() in ("", "json")
    return inside.strip() if newline and named else stripped


def load(body: str) -> Any:
    """Returns the value of a JSON text, its slips mended; raises `NotJson`."""
    try:
        return json.loads(body, object_pairs_hook=_once, parse_int=_whole, strict=False)
    except NotJson:
        raise
    except RecursionError as error:
        raise NotJson("its brackets are nested too deeply") from error
    except ValueError as error:
        return _mended(body, error)


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise NotJson(f"a number in it has {len(digits):,} digits; at most {MOST_DIGITS:,}")
    return int(digits)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    said = dict(pairs)
    if len(said) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise NotJson(f"it says {twice[:60]!r} twice in one object")
    return said


def _mended(body: str, error: ValueError) -> Any:
    if body[:1] not in _CLOSES:
        raise NotJson(f"it is not JSON: {error}") from error
    if find_end(body, 0) != len(body):
        raise NotJson("more follows where it should end") from error
    if len(body) > MAX_REPAIRED_CHARACTERS:
        raise NotJson(f"it is not JSON, and too long to mend: {error}") from error
    from json_repair import repair_json

    try:
        mended = repair_json(body, return_objects=True)
    except (ValueError, RecursionError):
        raise NotJson(f"it is not JSON: {error}") from error
    if type(mended) is not {"{": dict, "[": list}[body[0]] or not _same(body, mended):
        raise NotJson(f"it is not JSON: {error}") from error
    return mended


def _same(body: str, mended: Any) -> bool:
    """Tells whether a repair only touched punctuation: what it lost might be a finding."""
    written = json.dumps(mended, ensure_ascii=False)
    return not _ABSORBED.search(written) and _words(_COMMENT.sub("", body)) == _words(written)


def _words(text: str) -> list[str]:
    plain = _ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else " ", text)
    words = _WORD.findall(plain.lower())
    return [_PYTHON.get(word, word) for word in words]
