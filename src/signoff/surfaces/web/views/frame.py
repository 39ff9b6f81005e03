"""The frame of every page: head, navigation, main part, footer.

There are no inline scripts or styles, so the server can forbid them. Everything works without the
scripts: they only refresh a page while its run continues.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from signoff.app.settings.project import Project
from signoff.core.one_line import one_line
from signoff.core.requests import request_word
from signoff.runtime.store_port import RunRow
from signoff.surfaces.web.route_params import API, caller_of
from signoff.views.pages.html import Content, Markup, ago, run_path, tag, until

SCRIPTS = ("/static/htmx.min.js", "/static/hx-sse.min.js", "/static/page.js")
HTMX_CONFIG = (
    '{"includeIndicatorCSS":false,"history":false,"defaultSettleDelay":0,'
    # What a reader has opened or typed stays as it is when a page is refreshed.
    '"morphIgnore":["data-htmx-powered","open"],'
    # An error must not replace what is on the screen; the next event refreshes it.
    '"noSwap":[204,304,"4xx","5xx"]}'
)
LINKS = {"/": "Inbox and runs", "/workflows": "Start a run", "/spend": "Spend"}
"""The navigation: addresses, and what they are called."""
LONGEST_LINE = 160
"""Characters of a title or a reason in a list."""

router = APIRouter(include_in_schema=False)


@router.get("/static/report.css")
def report_style() -> Response:
    """Sends the style sheet of reports, which the pages share."""
    style = resources.files("signoff.views.pages").joinpath("style.css").read_bytes()
    return Response(style, media_type="text/css")


@dataclass(frozen=True)
class Live:
    """How a page follows what changes."""

    events: str
    """The address of the events; each is a reason to look again."""
    page: str
    """The address of the page itself."""


def events_path(row: RunRow) -> str:
    """Returns the address of the events of a run since its page was made."""
    return f"{API}{run_path(row.name, 'events')}?after={row.id}.{row.head}"


def request_words(request: Mapping[str, Any], now: float) -> Markup:
    """Returns a pending request as lists show it: its title, where it belongs, and its deadline."""
    title = one_line(str(request.get("title") or request["prompt"]), LONGEST_LINE)
    facts: list[Content] = [
        f"{request_word(request)} #{request['number']} · ",
        tag("a", request["run"], href=run_path(request["run"])),
        f" · {request['step']} · ",
        ago(request["opened_at"], now),
    ]
    deadline = request.get("deadline")
    if deadline is not None:
        words = [" · ", tag("b", "deadline ", until(deadline, now))]
        facts.append(tag("span", words, class_="wait"))
    name = tag("div", tag("a", title, href=f"/requests/{request['number']}"), class_="name")
    return tag("div", name, tag("div", facts, class_="facts"))


def show_page(
    request: Request,
    project: Project,
    title: str,
    *main: Content,
    here: str = "",
    live: Live | None = None,
    wide: bool = False,
    status: int = 200,
) -> Response:
    """Returns a whole page; with `live`, its main part follows what changes.

    `here` is the entry of the navigation that is shown as the current one.
    """
    name = project.home.root.name
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="htmx-config", content=HTMX_CONFIG) if live else None,
        tag("title", f"{title} · {name} · signoff"),
        tag("link", rel="stylesheet", href="/static/style.css"),
        tag("link", rel="icon", href="/static/favicon.svg", type="image/svg+xml"),
    ]
    body = [
        tag("a", "Skip to content", href="#main", class_="skip"),
        _header(caller_of(request).name, len(project.store.waiting()), here, live),
        tag("main", _followed(main, live), id="main", tabindex=-1, class_="wide" if wide else None),
        tag("footer", tag("p", f"signoff · project {name} · times are UTC")),
        # Not deferred: htmx starts when the page is complete, and would not wait for the others
        # if they arrived late. The page would never connect, or not notice that it has.
        [tag("script", src=each) for each in SCRIPTS] if live else None,
    ]
    page = f"<!DOCTYPE html>\n{tag('html', tag('head', head), tag('body', body), lang='en')}\n"
    return HTMLResponse(page.encode("utf-8", "replace"), status)


def _header(user: str, waiting: int, here: str, live: Live | None) -> Markup:
    count = tag("span", waiting, class_="count", aria_label=f"{waiting} pending")
    links = [
        tag(
            "a",
            words,
            count if waiting and address == "/" else None,
            href=address,
            aria_current="page" if address == here else None,
        )
        for address, words in LINKS.items()
    ]
    leave = tag("form", tag("button", "Log out", class_="small"), method="post", action="/logout")
    inside = [
        tag("a", "signoff", href="/", class_="brand"),
        tag("nav", links, aria_label="Main", id="top-links"),
        _listener(live),
        tag("span", user, class_="soft small", title="Your name in answers"),
        leave,
    ]
    return tag("header", tag("div", inside, class_="bar"), class_="top")


def _followed(main: Content, live: Live | None) -> Markup:
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
