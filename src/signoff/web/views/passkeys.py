"""Registering passkeys, and what a browser needs to sign with one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response

from signoff.app.answering import answer_to_sign
from signoff.app.history import form_of
from signoff.app.next_commands import error_message
from signoff.app.presence import (
    Registration,
    confirmation_options,
    created_passkey,
    passkeys_file,
    register,
    registration_options,
    signing_options,
)
from signoff.core.requests import needs_presence
from signoff.errors import NotAllowed, SignatureRefused, SignoffError
from signoff.pages.passkeys import new_passkey_page, passkeys_page
from signoff.passkeys.key_file import Passkey, read_passkeys
from signoff.web.access import Access, Caller
from signoff.web.callers import Decider
from signoff.web.projects import OpenProject
from signoff.web.views.frame import FormFields, SentForm, show_page
from signoff.web.views.request import edited_content, host_for_passkeys, sent_answer, sent_proof

router = APIRouter(include_in_schema=False)


@router.post("/requests/{number}/challenge")
def challenge(
    request: Request, project: OpenProject, caller: Decider, number: int, form: SentForm
) -> Response:
    """Sends what a browser needs to sign the answer in a form; null if it needs no signature."""

    def options() -> Mapping[str, Any] | None:
        item = project.store.item(number)
        answer = sent_answer(project, item, form, caller.name)
        item, stored = answer_to_sign(project, number, answer, edited_content(form))
        if not needs_presence(form_of(project, item), stored["value"]):
            return None
        host = host_for_passkeys(request)
        return signing_options(project.home, item, stored, caller.name, host)

    return _options(options)


@router.get("/passkeys")
def show_passkeys(request: Request, project: OpenProject) -> Response:
    """Shows who can sign approvals."""
    found = read_passkeys(passkeys_file(project.home))
    return show_page(request, project, "Passkeys", passkeys_page(found))


@router.get("/passkeys/new")
def show_new(request: Request, project: OpenProject, caller: Decider, key: str = "") -> Response:
    """Shows the form that registers a passkey."""
    registration = _registration(request, caller, key)
    page = new_passkey_page(registration.name, key)
    return show_page(request, project, "Register a passkey", page)


@router.post("/passkeys/new/options")
def new_options(
    request: Request, project: OpenProject, caller: Decider, form: SentForm
) -> Response:
    """Sends what a browser needs to create a passkey."""

    def options() -> Mapping[str, Any]:
        registration = _registration(request, caller, form.one("key"))
        return registration_options(project.home, registration, host_for_passkeys(request))

    return _options(options)


@router.post("/passkeys/new/confirmation")
def confirm_options(
    request: Request, project: OpenProject, caller: Decider, form: SentForm
) -> Response:
    """Sends what a browser needs to have a new passkey confirmed; null for the first one."""

    def options() -> Mapping[str, Any] | None:
        new = _created(request, form, caller, project.clock.now())
        return confirmation_options(project.home, new)

    return _options(options)


@router.post("/passkeys/new")
def add(request: Request, project: OpenProject, caller: Decider, form: SentForm) -> Response:
    """Registers a passkey."""
    new = _created(request, form, caller, project.clock.now())
    confirmation = sent_proof(request, form, "confirmation")
    access: Access = request.app.state.access
    if not access.use_registration(form.one("key")):
        # Two requests with the same link have both come this far.
        raise _used_up()
    register(project.home, new, confirmation)
    return RedirectResponse("/passkeys", 303)


def _created(request: Request, form: FormFields, caller: Caller, at: float) -> Passkey:
    created = sent_proof(request, form, "created")
    if created is None:
        raise SignatureRefused("the browser has sent no passkey; registering one needs JavaScript")
    registration = _registration(request, caller, form.one("key"))
    return created_passkey(registration, created, at)


def _registration(request: Request, caller: Caller, key: str) -> Registration:
    access: Access = request.app.state.access
    name = access.registration(key)
    if name is None:
        raise _used_up()
    return Registration(key, name, caller.name)


def _used_up() -> NotAllowed:
    return NotAllowed(
        "a passkey is registered with a link from the terminal, which works once; this one was "
        "used or has expired"
    )


def _options(compute: Callable[[], Mapping[str, Any] | None]) -> Response:
    """Returns options for the browser, or what keeps it from getting them."""
    try:
        return JSONResponse({"options": compute()})
    except SignoffError as error:
        return JSONResponse({"problem": error_message(error)}, 422)
