"""The pages about passkeys, and the part of a form that has its answer signed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from signoff.pages.html import Content, Markup, tag
from signoff.pages.parts import scrollable, table
from signoff.passkeys.key_file import HEADINGS, Passkey

SCRIPT = "/static/passkeys.js"
NO_SCRIPT = "This needs JavaScript: only a script can ask your authenticator."


def signature_fields(number: int) -> Iterator[Content]:
    """Yields what the form of a request needs to have its answer signed."""
    yield tag("input", type="hidden", name="assertion")
    yield tag(
        "p",
        "Approving needs the signature of a ",
        tag("a", "passkey", href="/passkeys"),
        ". Rejecting does not.",
        class_="small",
    )
    yield _script(f"/requests/{number}/challenge")


def passkeys_page(passkeys: Sequence[Passkey]) -> Iterator[Markup]:
    """Yields the page that shows who can sign approvals."""
    yield tag("h1", "Passkeys")
    yield tag(
        "p",
        "Approvals that require presence are signed with one of these. To register another, run ",
        tag("code", "signoff passkeys add NAME"),
        " in a terminal. The list is in ",
        tag("code", ".signoff/passkeys.json"),
        "; commit it, and review its changes.",
    )
    if not passkeys:
        yield tag("p", "There are none yet.", class_="notice")
        return
    yield scrollable("Passkeys", table(HEADINGS, [each.describe() for each in passkeys]))


def new_passkey_page(name: str, key: str) -> Iterator[Markup]:
    """Yields the page that registers a passkey."""
    yield tag("h1", f"Register passkey {name}")
    yield tag(
        "p",
        "Your browser creates a passkey in your authenticator: a security key, your phone or this "
        "computer. It can then sign approvals in your name. If there are passkeys already, one of "
        "them has to confirm it.",
    )
    yield tag(
        "form",
        [tag("input", type="hidden", name=each) for each in ("created", "confirmation")],
        tag("input", type="hidden", name="key", value=key),
        tag("div", tag("button", "Create passkey", class_="yes"), class_="actions"),
        _script("/passkeys/new"),
        method="post",
        action="/passkeys/new",
        class_="answer card",
    )


def _script(address: str) -> Content:
    return [
        tag("p", class_="notice problem", hidden=True, role="alert", data_sign=address),
        tag("noscript", tag("p", NO_SCRIPT, class_="notice problem")),
        tag("script", src=SCRIPT, defer=True),
    ]
