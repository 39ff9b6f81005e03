"""The frame of every page of the local web server: head, navigation, main part, footer.

There are no inline scripts or styles, so the server can forbid them. Everything works without the
scripts: they only refresh a page while its run continues.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from signoff.pages.html import Content, Markup, tag

STYLES = ("/static/style.css",)
SCRIPTS = ("/static/htmx.min.js", "/static/hx-sse.min.js", "/static/page.js")
HTMX_CONFIG = (
    '{"includeIndicatorCSS":false,"history":false,"defaultSettleDelay":0,'
    # What a reader has opened or typed stays as it is when a page is refreshed.
    '"morphIgnore":["data-htmx-powered","open"],'
    # An error must not replace what is on the screen; the next event refreshes it.
    '"noSwap":[204,304,"4xx","5xx"]}'
)


class Link(NamedTuple):
    """An entry of the navigation."""

    address: str
    words: str
    waiting: int = 0
    """How many things wait there."""


@dataclass(frozen=True)
class Frame:
    """What every page shows around its main part."""

    project: str
    """The name of the project."""
    user: str
    """Who is logged in; the author of every answer."""
    waiting: int = 0
    """How many requests are pending."""
    here: str = ""
    """The address of the entry of the navigation that is shown as the current one."""

    @property
    def links(self) -> Sequence[Link]:
        """The entries of the navigation."""
        return (
            Link("/", "Inbox and runs", self.waiting),
            Link("/workflows", "Start a run"),
            Link("/spend", "Spend"),
        )


@dataclass(frozen=True)
class Live:
    """How a page follows what changes."""

    events: str
    """The address of the events; each is a reason to look again."""
    page: str
    """The address of the page itself."""


def document(
    frame: Frame, title: str, *main: Content, live: Live | None = None, wide: bool = False
) -> str:
    """Returns a whole page; with `live`, its main part follows what changes."""
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="htmx-config", content=HTMX_CONFIG) if live else None,
        tag("title", f"{title} · {frame.project} · signoff"),
        [tag("link", rel="stylesheet", href=each) for each in STYLES],
        tag("link", rel="icon", href="/static/favicon.svg", type="image/svg+xml"),
    ]
    width = "wide" if wide else None
    body = [
        tag("a", "Skip to content", href="#main", class_="skip"),
        _header(frame, live),
        tag("main", _followed(main, live), id="main", tabindex=-1, class_=width),
        tag("footer", tag("p", f"signoff · project {frame.project} · times are UTC")),
        # Not deferred: htmx starts when the page is complete, and would not wait for the others
        # if they arrived late. The page would never connect, or not notice that it has.
        [tag("script", src=each) for each in SCRIPTS] if live else None,
    ]
    return f"<!DOCTYPE html>\n{tag('html', tag('head', head), tag('body', body), lang='en')}\n"


def _header(frame: Frame, live: Live | None) -> Markup:
    links = [
        tag(
            "a",
            link.words,
            tag("span", link.waiting, class_="count", aria_label=f"{link.waiting} pending")
            if link.waiting
            else None,
            href=link.address,
            aria_current="page" if link.address == frame.here else None,
        )
        for link in frame.links
    ]
    brand = tag("a", "signoff", href="/", class_="brand")
    who = tag("span", frame.user, class_="soft small", title="Your name in answers")
    leave = tag("form", tag("button", "Log out", class_="small"), method="post", action="/logout")
    inside = [
        brand,
        tag("nav", links, aria_label="Main", id="top-links"),
        _listener(live),
        who,
        leave,
    ]
    return tag("header", tag("div", inside, class_="bar"), class_="top")


def _followed(main: Sequence[Content], live: Live | None) -> Markup:
    """Returns the main part; a page that is followed no longer has it too, to be refreshed to."""
    # The page is fetched again, and only what differs is changed: focus and scroll stay.
    refresh: Mapping[str, str] = (
        {}
        if live is None
        else {
            "hx-get": live.page,
            "hx-trigger": "signoff:refresh from:body",
            "hx-select": "#live",
            "hx-select-oob": "#top-links:outerMorph",
            "hx-target": "#live",
            "hx-swap": "outerMorph",
            "hx-sync": "this:replace",
        }
    )
    return tag("div", main, id="live", **refresh)


def _listener(live: Live | None) -> Markup | None:
    if live is None:
        return None
    state = tag("span", "connecting", id="live-state", class_="small soft", role="status")
    # Outside of the part that is refreshed, so that the connection outlives each refresh.
    options = {"hx-sse:connect": live.events, "hx-swap": "none"}
    return tag("div", state, id="listener", class_="listener", **options)
