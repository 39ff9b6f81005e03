"""Texts as PostgreSQL stores them: it has no NUL character, and models write one now and then.

NUL becomes U+0001 and `0`; so that this can be reversed, U+0001 becomes U+0001 and `1`. JSON
contains neither, because its writers escape both, so journals and checkpoints need none of this.
"""

from __future__ import annotations

import re
from typing import overload

_MARK = "\x01"
_STORED = {"\x00": "\x010", _MARK: "\x011"}
_RESTORED = {stored: text for text, stored in _STORED.items()}
_SPECIAL = re.compile("[\x00\x01]")
_MARKED = re.compile("\x01.")


def stored_text(text: str) -> str:
    """Returns a text in a form that the server accepts."""
    if "\x00" in text or _MARK in text:
        return _SPECIAL.sub(lambda match: _STORED[match[0]], text)
    return text


def is_marked(text: str) -> bool:
    """Tells whether a stored text differs from the text it stands for."""
    return _MARK in text


@overload
def restored_text(text: str) -> str: ...
@overload
def restored_text(text: str | None) -> str | None: ...
def restored_text(text: str | None) -> str | None:
    """Returns a text as it was before it was stored."""
    if text is not None and is_marked(text):
        return _MARKED.sub(lambda match: _RESTORED[match[0]], text)
    return text
