"""The page that says what went wrong; it needs no project, so it can always be shown."""

from __future__ import annotations

from http import HTTPStatus

from signoff.app.next_commands import next_command
from signoff.pages.html import Content, tag
from signoff.remedies import OpenPage


def error_page(status: int, detail: str) -> bytes:
    """Returns a whole page about an error."""
    title = "Log in" if status == HTTPStatus.UNAUTHORIZED else HTTPStatus(status).phrase
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{title} · signoff"),
        tag("link", rel="stylesheet", href="/static/style.css"),
    )
    content = _login() if status == HTTPStatus.UNAUTHORIZED else (tag("p", detail), _home())
    body = tag("body", tag("main", tag("h1", title), content, class_="error-page"))
    return b"<!doctype html>" + tag("html", head, body, lang="en").encode("utf-8", "replace")


def _login() -> Content:
    return (
        tag(
            "p", "This page belongs to the user who started it. To log in here, open a login link."
        ),
        tag("p", "In the project's folder, ", next_command(OpenPage()), "."),
        # A link from another site arrives without the cookie; one from this page has it.
        tag("p", "Already logged in? ", tag("a", "Open this page", href=""), "."),
    )


def _home() -> Content:
    return tag("p", tag("a", "All runs", href="/"))
