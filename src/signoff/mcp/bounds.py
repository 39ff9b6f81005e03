"""Keeps what agents get short and harmless: bounded texts, control characters escaped.

Findings, artifacts and questions are written by models. Their text can be megabytes long, and a
client may print it on a terminal.
"""

from __future__ import annotations

from typing import Any, TypedDict

from signoff.core.one_line import one_line
from signoff.documents.control_characters import escape_controls

PAGE_CHARACTERS = 6_000
"""The size of a page of `show`, about 1,700 tokens."""


class Page(TypedDict):
    """A part of a longer text."""

    page: int
    pages: int
    text: str


def line(text: object, most: int) -> str:
    """Returns an untrusted text on one line of at most `most` characters."""
    # Cut before it is escaped, too: a megabyte of control characters would become six.
    return one_line(escape_controls(one_line(str(text), most)), most)


def page_of(text: str, number: int, size: int = PAGE_CHARACTERS) -> Page:
    """Returns a page of an untrusted text; a number past the end gives the last page."""
    safe = escape_controls(text)
    pages = max(1, -(-len(safe) // size))
    number = min(max(1, number), pages)
    return {"page": number, "pages": pages, "text": safe[(number - 1) * size : number * size]}


def without_empty(values: dict[str, Any]) -> dict[str, Any]:
    """Returns a reply without what it has nothing to say about."""
    return {name: value for name, value in values.items() if value not in (None, "", [], {}, ())}
