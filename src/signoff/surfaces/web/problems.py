"""Errors as answers: problem details (RFC 9457) for programs, a short page for people."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from signoff.app.runs.next_commands import next_command
from signoff.core import errors as er
from signoff.core.remedies import OpenPage
from signoff.documents.control_characters import json_text
from signoff.surfaces.web.idempotency import KeyReused
from signoff.views.pages.html import Content, tag

PROBLEM_TYPE = "application/problem+json"
MCP_PATH = "/mcp"
PROGRAM_PATHS = ("/api/", MCP_PATH)
"""What programs call: they get problems as data, not as pages."""

_STATUS: tuple[tuple[type[er.SignoffError], HTTPStatus], ...] = (
    (er.NameTaken, HTTPStatus.CONFLICT),
    (er.RequestClosed, HTTPStatus.CONFLICT),
    (er.RunBusy, HTTPStatus.CONFLICT),
    (er.RunEnded, HTTPStatus.CONFLICT),
    (er.DefinitionChanged, HTTPStatus.CONFLICT),
    (er.StaleApproval, HTTPStatus.PRECONDITION_FAILED),
    (er.NotAllowed, HTTPStatus.FORBIDDEN),
    (er.NotTrusted, HTTPStatus.FORBIDDEN),
    (er.StoreError, HTTPStatus.SERVICE_UNAVAILABLE),
    (KeyReused, HTTPStatus.UNPROCESSABLE_ENTITY),
    (er.AuthorError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (er.InvalidAnswer, HTTPStatus.UNPROCESSABLE_ENTITY),
    (er.OperatorError, HTTPStatus.BAD_REQUEST),
    (er.AgentError, HTTPStatus.BAD_REQUEST),
)
"""The first class that an error belongs to decides."""

_RESOURCES = ("run", "request", "finding", "workflow", "file", "round", "format")
"""Kinds of names that are part of an address; any other unknown name is a wrong value."""


def status_of(error: er.SignoffError) -> HTTPStatus:
    """Returns the HTTP status of an error."""
    if isinstance(error, er.UnknownName) and error.kind in _RESOURCES:
        return HTTPStatus.NOT_FOUND
    found = (status for kind, status in _STATUS if isinstance(error, kind))
    return next(found, HTTPStatus.INTERNAL_SERVER_ERROR)


def problem(
    status: int,
    kind: str,
    detail: str,
    *,
    remedies: tuple[Any, ...] = (),
    problems: tuple[Mapping[str, Any], ...] = (),
) -> dict[str, Any]:
    """Returns the document of a problem; `kind` is stable, `detail` is for people."""
    return {
        "type": f"urn:signoff:problem:{kind}",
        "title": HTTPStatus(status).phrase,
        "status": int(status),
        "kind": kind,
        "detail": detail,
        "remedies": [each.to_json() for each in remedies],
        "problems": list(problems),
    }


def problem_of(error: er.SignoffError) -> dict[str, Any]:
    """Returns the document of an error, with its kind and what fixes it as data."""
    found = getattr(error, "problems", ())
    places = tuple(
        {"where": each.where, "what": each.what, "fix": each.remedy}
        for each in found
        if isinstance(each, er.Problem)
    )
    kind = type(error).__name__
    return problem(status_of(error), kind, str(error), remedies=error.remedies, problems=places)


def problem_response(path: str, document: Mapping[str, Any]) -> Response:
    """Returns a problem as a document, or as a page that needs no project to be shown."""
    status = HTTPStatus(document["status"])
    headers = {
        # The database is locked by another process, which takes a moment.
        HTTPStatus.SERVICE_UNAVAILABLE: {"retry-after": "1"},
        HTTPStatus.UNAUTHORIZED: {"www-authenticate": "Bearer"},
    }.get(status)
    if path.startswith(PROGRAM_PATHS):
        body = json_text(document, default=str).encode("utf-8", "replace")
        return Response(body, status, headers, media_type=PROBLEM_TYPE)
    page = _error_page(status, str(document["detail"]))
    return Response(page.encode("utf-8", "replace"), status, headers, media_type="text/html")


def _error_page(status: HTTPStatus, detail: str) -> str:
    asks_login = status is HTTPStatus.UNAUTHORIZED
    title = "Log in" if asks_login else status.phrase
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{title} · signoff"),
        tag("link", rel="stylesheet", href="/static/style.css"),
    )
    home = tag("p", tag("a", "All runs", href="/"))
    content = _LOGIN if asks_login else (tag("p", detail), home)
    body = tag("body", tag("main", tag("h1", title), content, class_="error-page"))
    return f"<!doctype html>{tag('html', head, body, lang='en')}"


_LOGIN: Content = (
    tag("p", "This page belongs to the user who started it. To log in here, open a login link."),
    tag("p", "In the project's folder, ", next_command(OpenPage()), "."),
    # A link from another site arrives without the cookie; one from this page has it.
    tag("p", "Already logged in? ", tag("a", "Open this page", href=""), "."),
)


def answer_errors(app: FastAPI) -> None:
    """Has all errors of an application answered in the form that the caller expects."""

    def answer(request: Request, error: Exception) -> Response:
        return problem_response(request.url.path, _document_of(error))

    for kind in (er.SignoffError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, answer)


def _document_of(error: Exception) -> dict[str, Any]:
    match error:
        case er.SignoffError():
            return problem_of(error)
        case RequestValidationError():
            places = tuple(
                {"where": ".".join(map(str, each["loc"])), "what": each["msg"], "fix": ""}
                for each in error.errors()
            )
            detail = "; ".join(f"{each['where']}: {each['what']}" for each in places)
            return problem(422, "InvalidRequest", detail, problems=places)
        case HTTPException():
            return problem(error.status_code, "HttpError", str(error.detail))
        case _:
            # The message of an error that nobody expected may hold anything, so only its kind is
            # told.
            detail = "signoff itself is at fault; its log has the details"
            return problem(500, type(error).__name__, detail)
