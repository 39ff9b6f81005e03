"""Writes values as readable YAML: in order, and texts of several lines as blocks.

ruamel.yaml takes half a second for a verdict on three hundred findings, while the critics of
the next round wait for the interpreter; this takes milliseconds. Only plain values are written,
each in one form: blocks, unambiguous words, and quoted texts in which every character that is
not visible is escaped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_WORD = re.compile(r"[A-Za-z][\w./-]*(?: [\w./-]+)*[.]?", re.ASCII)
"""A text that needs no quotes, unless it is a keyword."""

_ESCAPED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}

# Words that YAML, or an older version of it, reads as something else.
_KEYWORDS = frozenset("true false yes no on off null y n".split())


def as_yaml(value: Mapping[str, Any]) -> bytes:
    """Returns a mapping as a YAML document."""
    lines = _mapping(value, "") if value else ["{}"]
    return ("\n".join(lines) + "\n").encode()


def _mapping(value: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, each in value.items():
        yield from _entry(f"{indent}{_text(str(key))}:", each, f"{indent}  ")


def _sequence(value: list[Any] | tuple[Any, ...], indent: str) -> Iterator[str]:
    for each in value:
        if isinstance(each, Mapping) and each:
            first, *rest = _mapping(each, f"{indent}  ")
            yield f"{indent}- {first.removeprefix(f'{indent}  ')}"
            yield from rest
        else:
            yield from _entry(f"{indent}-", each, f"{indent}  ")


def _entry(head: str, value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        yield head
        yield from _mapping(value, indent)
    elif isinstance(value, list | tuple) and value:
        yield head
        yield from _sequence(value, indent)
    elif isinstance(value, str) and _reads_as_block(value):
        body = value.removesuffix("\n")
        yield f"{head} {'|' if value.endswith(chr(10)) else '|-'}"
        yield from (f"{indent}{line}" if line else "" for line in body.split("\n"))
    else:
        yield f"{head} {_scalar(value)}"


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{}"
    return "[]" if isinstance(value, list | tuple) else json.dumps(value)


def _text(text: str) -> str:
    if _WORD.fullmatch(text) and text.lower() not in _KEYWORDS:
        return text
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_character, text)) + '"'


def _character(character: str) -> str:
    if character in _ESCAPED:
        return _ESCAPED[character]
    if character.isprintable():
        return character
    code = ord(character)
    if 0xD800 <= code <= 0xDFFF:
        # Half of a surrogate pair is not a character; its escape is written as text.
        return f"\\\\u{code:04x}"
    return f"\\U{code:08X}"


def _reads_as_block(text: str) -> bool:
    """Tells whether a text of several lines can be written as a block without changing it."""
    if "\n" not in text or text[0].isspace() or text.endswith("\n\n"):
        return False
    plain = text.replace("\n", "").replace("\t", "").isprintable()
    # Lines may end with blanks, but a line of blanks would be read as an empty one.
    return plain and not any(line.isspace() for line in text.split("\n"))
