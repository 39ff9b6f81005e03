"""Escapes characters that a terminal or an editor interprets instead of showing.

An escape sequence can rewrite the line above it, and a bidirectional override can reverse
the words of a request, so an approver would see another text than the one they approve. In
JSON nothing is lost: a parser turns the escapes back into the same text.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

_INTERPRETED = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
)
"""C0 without tab and line feed, DEL, C1, the bidirectional marks, overrides and isolates, and half
surrogate pairs, which no UTF-8 output can hold."""

CONTROL = re.compile(f"[{_INTERPRETED}]")


def json_text(value: Any, *, ensure_ascii: bool = False, **options: Any) -> str:
    """Returns a value as JSON that is safe to print; `options` are those of `json.dumps`."""
    text = _indented(value) if options == {"indent": 2} and not ensure_ascii else None
    if text is None:
        text = json.dumps(value, ensure_ascii=ensure_ascii, **options)
    # In JSON these characters can only be inside strings, where this escape is valid.
    return CONTROL.sub(_escape, text)


def _indented(value: Any) -> str | None:
    """Returns JSON with indents; None for what only `json` can write, such as a huge number.

    `json` takes seconds for the state of a review with thousands of findings.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    except TypeError:
        return None


def shown_text(value: Any) -> str:
    """Returns one of the values that a request shows as text for people.

    Lists and mappings of single lines become lines; nothing in them can pass for another entry.
    """
    match value:
        case str():
            return value
        case list() if all(map(_is_line, value)):
            return "\n".join(value) or "none"
        case dict() if all(map(_is_line, (*value, *value.values()))):
            return "\n".join(f"{name}: {text}" for name, text in value.items()) or "none"
        case _:
            return json_text(value, indent=2)


def _is_line(value: Any) -> bool:
    return isinstance(value, str) and len(value.splitlines()) <= 1


def escape_controls(text: str) -> str:
    """Returns a text with its control characters escaped, for example as \\u001b."""
    return CONTROL.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def replace_lone_surrogates(text: str) -> str:
    """Joins surrogate pairs and replaces surrogates without a partner.

    A cut-off emoji or a badly decoded byte cannot be sent as UTF-8.
    """
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
