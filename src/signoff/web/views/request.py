"""The page of a request, and the answers that are given there."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from signoff.app.answering import (
    AnswerInput,
    approve_edited,
    file_to_edit,
    record_answer,
    request_to_json,
)
from signoff.app.presence import Proof
from signoff.app.project import Project
from signoff.app.runs import catch_up, current_row
from signoff.core.requests import AnswerForm
from signoff.documents.control_characters import shown_text
from signoff.errors import (
    InvalidAnswer,
    RequestClosed,
    SignatureRefused,
    SignoffError,
    StaleApproval,
    UnknownName,
    UsageError,
)
from signoff.pages.document import Live
from signoff.pages.html import tag
from signoff.pages.parts import run_path, sentence
from signoff.pages.request import Draft, EditedFile, RequestPage, request_page, shown_title
from signoff.pages.review_context import review_context, shown_better
from signoff.pages.run_files import rendered_files
from signoff.runtime.store_port import InboxItem
from signoff.web.callers import Decider
from signoff.web.projects import OpenProject
from signoff.web.views.frame import (
    FormFields,
    SentForm,
    continue_run,
    events_path,
    followed_runs,
    show_page,
)
from signoff.web.views.run import SANDBOX

router = APIRouter(include_in_schema=False)

# A passkey belongs to a host name. Its signature also names the origin, the address with the port,
# and only ours counts: every other page of this machine could ask for a signature for `localhost`.
LOCAL_NAME = "localhost"


@router.get("/requests/{number}")
def show_request(request: Request, project: OpenProject, number: int) -> Response:
    """Shows a request and the form that answers it."""
    return _page(request, project, project.store.item(number))


@router.get("/requests/{number}/shown/{index}")
def show_all(project: OpenProject, number: int, index: int) -> Response:
    """Sends one of the texts that a request shows, in full."""
    _, text = _shown(project, number, index)
    headers = {"content-security-policy": SANDBOX}
    return Response(text.encode("utf-8", "replace"), media_type="text/plain", headers=headers)


@router.get("/requests/{number}/rendered/{index}")
def show_rendered(request: Request, project: OpenProject, number: int, index: int) -> Response:
    """Shows one of the texts of a request as its readers will see it."""
    name, text = _shown(project, number, index)
    back = f"/requests/{number}"
    title = f"{shown_title(name)}, rendered"
    return show_page(
        request, project, title,
        tag("p", tag("a", f"← Request #{number}", href=back), class_="small"), tag("h1", title),
        rendered_files({"": text}, back),
    )  # fmt: skip


def _shown(project: Project, number: int, index: int) -> tuple[str, str]:
    """Returns the name and the whole of one of the texts that a request shows."""
    shown = list(request_to_json(project, project.store.item(number))["shown"].items())
    if not 0 <= index < len(shown):
        raise UnknownName("text", str(index), map(str, range(len(shown))))
    name, value = shown[index]
    return name, shown_text(value)


@router.post("/requests/{number}")
def answer(
    request: Request, project: OpenProject, caller: Decider, number: int, form: SentForm
) -> Response:
    """Records an answer and hands the run to a worker."""
    item = project.store.item(number)
    try:
        given = replace(
            sent_answer(project, item, form, caller.name),
            proof=sent_proof(request, form, "assertion"),
        )
        answered = _record(project, item, form, given)
    except SignoffError as error:
        draft = _draft(form, error)
        return _page(request, project, project.store.item(number), draft)
    catch_up(project, answered.run, repair=False)
    # The answer is recorded, whatever becomes of the run: its page shows how to continue it.
    with suppress(SignoffError):
        continue_run(project, answered.run)
    return RedirectResponse(f"{run_path(answered.run)}?done={number}", 303)


def sent_answer(project: Project, item: InboxItem, form: FormFields, by: str) -> AnswerInput:
    """Returns the answer in a form; raises `InvalidAnswer` if it does not say what it is about."""
    digest = form.one("digest")
    if not digest:
        raise InvalidAnswer("the digest of what was shown is missing; reload the page")
    return AnswerInput(_value(project, item, form), form.one("text").strip(), by, digest)


def edited_content(form: FormFields) -> str | None:
    """Returns the text that the approver has put into the file of an approval, if any."""
    return form.one("content") if "content" in form else None


def _record(project: Project, item: InboxItem, form: FormFields, given: AnswerInput) -> InboxItem:
    content = edited_content(form)
    if given.value is True and content is not None:
        return approve_edited(project, item.id, given, content, form.one("file_digest"))
    return record_answer(project, item.id, given)


def _value(project: Project, item: InboxItem, form: FormFields) -> object:
    match item.kind.answer_form:
        case AnswerForm.DECISION:
            return {"approve": True, "reject": False}.get(form.one("action"))
        case AnswerForm.PICKS:
            return _chosen(project, item, form)
        case AnswerForm.PICK | AnswerForm.TEXT | AnswerForm.WORK:
            return form.one("value")


def _chosen(project: Project, item: InboxItem, form: FormFields) -> dict[str, list[str]]:
    questions = request_to_json(project, item)["questions"]
    chosen = {each["header"]: form.all(f"question-{n}") for n, each in enumerate(questions)}
    return {header: labels for header, labels in chosen.items() if labels}


def _draft(form: FormFields, error: SignoffError) -> Draft:
    match error:
        case RequestClosed():
            problem, stale = sentence(f"Your answer was not recorded: {error}"), True
        case StaleApproval():
            words = f"This page was out of date, so your answer was not recorded: {error}"
            problem, stale = sentence(words), True
        case InvalidAnswer():
            problem, stale = sentence(str(error)), False
        case _:
            raise error
    return Draft(problem, form.one("text"), form.one("content") or form.one("value"), stale)


def _page(
    request: Request, project: Project, item: InboxItem, draft: Draft | None = None
) -> Response:
    row = current_row(project, project.store.row(item.run))
    described = request_to_json(project, item)
    with followed_runs(request).look(project, row) as run:
        history = run.review
        page = RequestPage(
            request=described,
            now=project.clock.now(),
            draft=draft,
            file=_edited(project, item),
            context=review_context(item.run, history) if history else None,
            better=shown_better(described, history) if history else {},
        )
        parts = list(request_page(page))
    live = Live(events_path(row), f"/requests/{item.id}")
    title, status = f"Request #{item.id}", 200 if draft is None else 409 if draft.stale else 422
    return show_page(request, project, title, parts, live=live, wide=True, status=status)


def _edited(project: Project, item: InboxItem) -> EditedFile | None:
    found = file_to_edit(project, item)
    if found is None:
        return None
    return EditedFile(found.path, found.text, found.digest, exists=bool(found.digest))


def origins_of(request: Request) -> list[str]:
    """Returns the origins of this server's pages.

    The port is that of the socket: the header that names the host is the caller's own word.
    Browsers let pages of other machines use passkeys only over TLS, which a proxy adds.
    """
    _, port = request.scope["server"]
    hosts: tuple[str, ...] = request.app.state.hosts
    return [f"http://{LOCAL_NAME}:{port}", *(f"https://{each}" for each in hosts)]


def host_for_passkeys(request: Request) -> str:
    """Returns the host name that a page was opened under; raises `UsageError` for an address."""
    host, hosts = request.url.hostname or "", (LOCAL_NAME, *request.app.state.hosts)
    if host not in hosts:
        page = f"{origins_of(request)[0]}{request.url.path.removesuffix('/challenge')}"
        raise UsageError(f"passkeys work under a host name, not under {host}; open {page}")
    return host


def sent_proof(request: Request, form: FormFields, field: str) -> Proof | None:
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
    return Proof(reply, origins_of(request))
