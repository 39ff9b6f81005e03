"""Escapes characters that a terminal or an editor obeys instead of showing.

An escape sequence can rewrite the line above it, and a bidirectional override can reverse
the words of a request, so a person would approve another text than the one shown. In
JSON the escapes lose nothing: whoever reads the document gets the same text.
"""

from __future__ import annotations

import json
import re
from typing import Any

_OBEYED = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""C0 without tab and line feed, DEL, C1, and the bidirectional marks, overrides and isolates."""

CONTROL = re.compile(f"[{_OBEYED}]")


def json_text(value: Any, *, ensure_ascii: bool = False, **options: Any) -> str:
    """Returns a value as JSON that is safe to print; `options` are those of `json.dumps`."""
    # Inside JSON such a character can only be part of a string, where this escape is valid.
    return CONTROL.sub(_code_unit, json.dumps(value, ensure_ascii=ensure_ascii, **options))


def escape_controls(text: str) -> str:
    """Returns a text with its control characters written out, such as \\u001b."""
    return CONTROL.sub(_code_unit, text)


def _code_unit(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
