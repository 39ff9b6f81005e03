"""The pages about passkeys: registering them, and what a browser needs to sign with one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response

from signoff.app.people import passkeys as keys
from signoff.app.runs.next_commands import error_message
from signoff.core.errors import NotAllowed, SignatureRefused, SignoffError, UsageError
from signoff.surfaces.web.access import Access, Caller
from signoff.surfaces.web.route_params import Decider, FormFields, OpenProject, SentForm
from signoff.surfaces.web.views.frame import show_page
from signoff.views.pages.html import Content, scrollable, table, tag

# A passkey belongs to a host name. Its signature also names the origin, the address with the port,
# and only ours counts: every other page of this machine could ask for a signature for `localhost`.
LOCAL_NAME = "localhost"
NO_SCRIPT = "This needs JavaScript: only a script can ask your authenticator."

router = APIRouter(include_in_schema=False)


@router.get("/passkeys")
def show_passkeys(request: Request, project: OpenProject) -> Response:
    """Shows who can sign approvals."""
    rows = [each.describe() for each in keys.read_passkeys(project.home.passkeys)]
    about = (
        "Approvals that require presence are signed with one of these. To register another, run ",
        tag("code", "signoff passkeys add NAME"),
        " in a terminal. The list is in ",
        tag("code", ".signoff/passkeys.json"),
        "; commit it, and review its changes.",
    )
    none = tag("p", "There are none yet.", class_="notice")
    found = scrollable("Passkeys", table(keys.HEADINGS, rows)) if rows else none
    return show_page(request, project, "Passkeys", tag("h1", "Passkeys"), tag("p", *about), found)


@router.get("/passkeys/new")
def show_new(request: Request, project: OpenProject, _caller: Decider, key: str = "") -> Response:
    """Shows the form that registers a passkey."""
    about = (
        "Your browser creates a passkey in your authenticator: a security key, your phone or this "
        "computer. It can then sign approvals in your name. If there are passkeys already, one of "
        "them has to confirm it."
    )
    form = tag(
        "form",
        [tag("input", type="hidden", name=each) for each in ("created", "confirmation")],
        tag("input", type="hidden", name="key", value=key),
        tag("div", tag("button", "Create passkey", class_="yes"), class_="actions"),
        _script("/passkeys/new"),
        method="post",
        action="/passkeys/new",
        class_="answer card",
    )
    heading = tag("h1", f"Register passkey {_registered_name(request, key)}")
    return show_page(request, project, "Register a passkey", heading, tag("p", about), form)


@router.post("/passkeys/new/options")
def new_options(
    request: Request, project: OpenProject, _caller: Decider, form: SentForm
) -> Response:
    """Sends what a browser needs to create a passkey."""

    def options() -> Mapping[str, Any]:
        key = form.one("key")
        name, host = _registered_name(request, key), host_for_passkeys(request)
        return keys.registration_options(project.home.passkeys, key, name, host)

    return browser_options(options)


@router.post("/passkeys/new/confirmation")
def confirm_options(
    request: Request, project: OpenProject, caller: Decider, form: SentForm
) -> Response:
    """Sends what a browser needs to have a new passkey confirmed; null for the first one."""

    def options() -> Mapping[str, Any] | None:
        new = _created(request, form, caller, project.clock.now())
        return keys.confirmation_options(project.home.passkeys, new)

    return browser_options(options)


@router.post("/passkeys/new")
def add(request: Request, project: OpenProject, caller: Decider, form: SentForm) -> Response:
    """Registers a passkey."""
    new = _created(request, form, caller, project.clock.now())
    confirmation = sent_proof(request, form, "confirmation")
    access: Access = request.app.state.access
    # Used up before the passkey is added, so that of two requests with one link only one adds.
    if not access.use_registration(form.one("key")):
        raise _used_up()
    keys.register(project.home.passkeys, new, confirmation)
    return RedirectResponse("/passkeys", 303)


def _created(request: Request, form: FormFields, caller: Caller, at: float) -> keys.Passkey:
    created, key = sent_proof(request, form, "created"), form.one("key")
    if created is None:
        raise SignatureRefused("the browser has sent no passkey; registering one needs JavaScript")
    return keys.created_passkey(key, _registered_name(request, key), caller.name, created, at)


def _registered_name(request: Request, key: str) -> str:
    """Returns the name of the passkey that a link registers; raises `NotAllowed`."""
    access: Access = request.app.state.access
    name = access.registration(key)
    if name is None:
        raise _used_up()
    return name


def _used_up() -> NotAllowed:
    return NotAllowed(
        "a passkey is registered with a link from the terminal, which works once; this one was "
        "used or has expired"
    )


def signature_fields(number: int) -> Iterator[Content]:
    """Yields what the form of a request needs to have its answer signed."""
    link = tag("a", "passkey", href="/passkeys")
    words = ("Approving needs the signature of a ", link, ". Rejecting does not.")
    yield tag("input", type="hidden", name="assertion")
    yield tag("p", *words, class_="small")
    yield _script(f"/requests/{number}/challenge")


def _script(address: str) -> Content:
    return [
        tag("p", class_="notice problem", hidden=True, role="alert", data_sign=address),
        tag("noscript", tag("p", NO_SCRIPT, class_="notice problem")),
        tag("script", src="/static/passkeys.js", defer=True),
    ]


def browser_options(compute: Callable[[], Mapping[str, Any] | None]) -> Response:
    """Returns options for the browser, or what keeps it from getting them."""
    try:
        return JSONResponse({"options": compute()})
    except SignoffError as error:
        return JSONResponse({"problem": error_message(error)}, 422)


def sent_proof(request: Request, form: FormFields, field: str) -> keys.Proof | None:
    """Returns what an authenticator returned to a page; None if nothing was sent."""
    text = form.one(field)
    if not text:
        return None
    try:
        reply = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SignatureRefused("the reply of the authenticator is damaged") from error
    if not isinstance(reply, dict):
        raise SignatureRefused("the reply of the authenticator is damaged")
    return keys.Proof(reply, _origins_of(request))


def host_for_passkeys(request: Request) -> str:
    """Returns the host name that a page was opened under; raises `UsageError` for an address."""
    host, hosts = request.url.hostname or "", (LOCAL_NAME, *request.app.state.hosts)
    if host not in hosts:
        page = f"{_origins_of(request)[0]}{request.url.path.removesuffix('/challenge')}"
        raise UsageError(f"passkeys work under a host name, not under {host}; open {page}")
    return host


def _origins_of(request: Request) -> list[str]:
    """Returns the origins of this server's pages.

    The port is that of the socket: the header that names the host is the caller's own word.
    Browsers let pages of other machines use passkeys only over TLS, which a proxy adds.
    """
    _, port = request.scope["server"]
    hosts: tuple[str, ...] = request.app.state.hosts
    return [f"http://{LOCAL_NAME}:{port}", *(f"https://{each}" for each in hosts)]
