"""Errors as answers: problem details (RFC 9457) for programs, a short page for people."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from signoff import errors as er
from signoff.documents.control_characters import json_text
from signoff.web.idempotency import KeyReused

PROBLEM_TYPE = "application/problem+json"
API_PREFIX = "/api/"

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


def problem_body(document: Mapping[str, Any]) -> bytes:
    """Returns a document as bytes that are safe to print."""
    return json_text(document, default=str).encode("utf-8", "replace")
