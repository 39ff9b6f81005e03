"""Builds HTML that is safe by construction: every text is escaped unless a tag was made of it.

Texts of models, artifacts and critics are hostile. A text can become markup only here, through
`tag`, so no page can forget to escape one.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from signoff.documents.control_characters import escape_controls

_VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "path", "rect", "line", "wbr"})
"""Elements without an end tag; SVG needs the slash, and HTML ignores it."""


class Markup(str):
    """A piece of HTML."""

    __slots__ = ()


Content = str | int | float | None | Iterable["Content"]
"""A text, a number, a piece of HTML, nothing, or several of these."""


def tag(name: str, /, *children: Content, **attributes: str | int | float | bool | None) -> Markup:
    """Returns an element; attributes that are None or False are left out.

    `class_` and `for_` stand for `class` and `for`; in other names, `_` stands for `-`.
    """
    opened = "".join([name, *(_attribute(*each) for each in attributes.items())])
    if name in _VOID:
        return Markup(f"<{opened}/>")
    return Markup(f"<{opened}>{join(children)}</{name}>")


def join(children: Iterable[Content]) -> Markup:
    """Returns several pieces as one; texts are escaped."""
    return Markup("".join(map(_render, children)))


def _render(child: Content) -> str:
    match child:
        case Markup():
            return child
        case None:
            return ""
        case str():
            # Control characters are no HTML, and bidirectional marks could reorder a page.
            return escape(escape_controls(child))
        case int() | float():
            return str(child)
        case _:
            return join(child)


def _attribute(name: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    key = name.rstrip("_").replace("_", "-")
    return f" {key}" if value is True else f' {key}="{escape(escape_controls(str(value)))}"'
