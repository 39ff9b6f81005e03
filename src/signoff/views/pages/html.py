"""Builds HTML that is safe by construction: every text is escaped unless a tag was made of it.

Texts of models, artifacts and critics are hostile. A text can become markup only here, through
`tag`, so no page can forget to escape one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from urllib.parse import quote

from signoff.core.outcome import Status
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
        # Before the case of texts: it is one too, and would be escaped twice.
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
    # Values come from models too: a quote in one must not end its attribute.
    key = name.rstrip("_").replace("_", "-")
    return f" {key}" if value is True else f' {key}="{escape(escape_controls(str(value)))}"'


_STATUS_STYLES = {
    Status.COMPLETED: "good",
    Status.WAITING: "wait",
    Status.PARKED: "wait",
    Status.QUEUED: "busy",
    Status.RUNNING: "busy",
}

LONGEST_LINE = 10_000
"""Characters of a line, or of what an agent said in one; minified files have lines of megabytes."""


def section(name: str, title: Content, *parts: Content) -> Markup:
    """Returns a part of a page with a heading; `name` is its place in links."""
    heading = tag("h2", title, id=f"{name}-title")
    return tag("section", heading, "\n", parts, id=name, aria_labelledby=f"{name}-title")


def table(headings: Sequence[str], rows: Sequence[Sequence[Content]], numbers: int = 0) -> Markup:
    """Returns a table whose last columns are numbers, as many as `numbers` says."""
    kinds = [None] * (len(headings) - numbers) + ["n"] * numbers
    head = [
        tag("th", text, class_=kind, scope="col")
        for text, kind in zip(headings, kinds, strict=True)
    ]
    body = [
        tag("tr", [tag("td", cell, class_=kind) for cell, kind in zip(row, kinds, strict=True)])
        for row in rows
    ]
    return tag("table", tag("thead", tag("tr", head)), tag("tbody", join(body)))


def scrollable(label: str, *parts: Content) -> Markup:
    """Returns parts in a box that scrolls sideways, by keyboard too."""
    return tag("div", parts, class_="card scroll", tabindex=0, role="group", aria_label=label)


def folded(title: str, amount: str, *parts: Content, **attributes: str | bool | None) -> Markup:
    """Returns parts below a line that unfolds them; `amount` says how much there is."""
    summary = tag("summary", title, tag("span", f" · {amount}", class_="soft"))
    return tag("details", summary, parts, **attributes)


def tile(value: str, label: str) -> Markup:
    """Returns one figure with its label."""
    return tag("div", tag("b", value), tag("span", label), class_="tile")


def moment(at: float) -> str:
    """Returns a time in UTC, to the minute."""
    # Reports are sent to other time zones, and a run may be watched from several.
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


def ago(then: float, now: float) -> Markup:
    """Returns roughly how long ago a time was; the exact time is its title."""
    return _when(then, f"{_roughly(now - then)} ago")


def until(then: float, now: float) -> Markup:
    """Returns roughly how far away a time is; `overdue` if it has passed."""
    return _when(then, f"in {_roughly(then - now)}" if then > now else "overdue")


def _when(at: float, words: str) -> Markup:
    exact = datetime.fromtimestamp(at, UTC)
    return tag("time", words, datetime=f"{exact:%Y-%m-%dT%H:%M:%SZ}", title=f"{moment(at)} UTC")


def _roughly(seconds: float) -> str:
    whole = max(0, int(seconds))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if whole >= size:
            return f"{whole // size} {unit}"
    return f"{whole} s"


def status_mark(status: Status, words: str = "") -> Markup:
    """Returns the status of a run as a colored mark."""
    text = words or status.value.replace("_", " ")
    return tag("span", text, class_=f"verdict {_STATUS_STYLES.get(status, 'bad')}")


def cut(text: str) -> str:
    """Returns a text without its end if that would be too long for a browser, and says so."""
    # Browsers stop at lines of megabytes, which minified files have; what is missing is said.
    rest = len(text) - LONGEST_LINE
    return f"{text[:LONGEST_LINE]}… ({rest:,} more characters)" if rest > 0 else text


def sentence(text: str) -> str:
    """Returns a text that ends like a sentence, whether it did or not."""
    text = text.rstrip()
    return text if text.endswith((".", "!", "?", "…", ":")) else f"{text}."


def run_path(run: str, *parts: str) -> str:
    """Returns the address of a run's page, or of a page below it."""
    return "/".join(["/runs", *(quote(part, safe="") for part in (run, *parts))])
