"""Requests to humans, and their answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request

from signoff.app.answering import (
    LONGEST_NUMBER,
    AnswerInput,
    decide,
    open_requests,
    record_answer,
    request_line,
    request_to_json,
)
from signoff.app.hand_over import continue_run
from signoff.app.project import Project
from signoff.app.runs import catch_up
from signoff.errors import RequestClosed
from signoff.runtime.store_port import InboxItem
from signoff.web.access import Caller
from signoff.web.api.documents import API, AnswerDocument, Key, RequestDocument, RequestInfo
from signoff.web.idempotency import IdempotencyKeys
from signoff.web.route_params import Decider, OpenProject

Number = Annotated[int, Path(ge=1, lt=10**LONGEST_NUMBER, description="A request's number.")]
TITLE_CHARACTERS = 80
LISTED_CHARACTERS = 200
"""How much of a prompt a list has; a prompt to an agent can fill a page."""

router = APIRouter(prefix=API, tags=["inbox"])


@router.get("/inbox", operation_id="list_requests")
def list_requests(
    project: OpenProject,
    run: Annotated[str | None, Query(max_length=100, description="Only of this run.")] = None,
) -> list[RequestInfo]:
    """List pending requests, oldest first, each with the beginning of its prompt."""
    return [_listed(request_line(project, line)) for line in open_requests(project, run)]


@router.get("/inbox/{number}", operation_id="get_request")
def get_request(project: OpenProject, number: Number) -> RequestDocument:
    """Get a request: what is shown, what can be answered, and the digest to answer with."""
    return _document(project, project.store.item(number))


@router.post("/inbox/{number}/answer", operation_id="answer_request")
def answer_request(
    request: Request,
    project: OpenProject,
    caller: Decider,
    number: Number,
    body: AnswerDocument,
    key: Key = None,
) -> RequestDocument:
    """Answer a request, once, bound to what was shown.

    The name of the session or the token is recorded as the author. An answer to something else
    than what is shown now is refused with 412, a second answer with 409.
    """
    keys: IdempotencyKeys = request.app.state.keys
    asked, now = f"answer {number} {body.model_dump_json()}", project.clock.now()
    with keys.request(caller.name, key, asked, str(number), now) as claim:
        item = _record(project, number, body, caller, repeated=claim.repeated)
    catch_up(project, item.run, repair=False)
    if body.resume:
        continue_run(project, item.run)
    return _document(project, project.store.item(number))


def _listed(line: dict[str, Any]) -> RequestInfo:
    prompt = line["prompt"]
    title = line["title"] or next(iter(prompt.strip().splitlines()), "")
    short = {"title": _cut(title, TITLE_CHARACTERS), "prompt": _cut(prompt, LISTED_CHARACTERS)}
    return RequestInfo.model_validate({**line, **short})


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _record(
    project: Project, number: int, body: AnswerDocument, caller: Caller, *, repeated: bool
) -> InboxItem:
    try:
        answer = AnswerInput(body.value, body.text, caller.name, body.digest)
        if isinstance(body.value, bool):
            return decide(project, number, answer, yes=body.value)
        return record_answer(project, number, answer)
    except RequestClosed:
        item = project.store.item(number)
        if repeated and item.answered_by == caller.name and _same(item, body.text):
            return item
        raise


def _same(item: InboxItem, text: str) -> bool:
    """Tells whether the recorded answer is the one that is repeated: the key says what it was."""
    return item.answer is not None and json.loads(item.answer).get("text") == text


def _document(project: Project, item: InboxItem) -> RequestDocument:
    return RequestDocument.model_validate(remote_request(request_to_json(project, item)))


_LOCAL = frozenset({"commands", "file", "prompt_file"})
"""What a request has for someone at this machine."""


def remote_request(request: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a request without what is of use only at this machine."""
    return {name: value for name, value in request.items() if name not in _LOCAL}
