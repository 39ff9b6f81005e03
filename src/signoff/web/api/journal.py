"""The events of runs: page by page from the journal, or as they happen."""

from __future__ import annotations

from itertools import groupby
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from signoff.app.history import events_of
from signoff.core import events as ev
from signoff.web.api.documents import EventDocument, EventPage
from signoff.web.api.prefix import API
from signoff.web.api.runs import RunName
from signoff.web.live import EVENT_STREAM, event_stream
from signoff.web.projects import OpenProject

_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events named `change`; their data has `runs`, the runs that "
        "have changed and how far they are, and `everything`, whether anything else may have "
        "changed too. Their id is a position: connect again with it as `Last-Event-ID`, or "
        "`after`, and you get what you missed. `gone` says that the run was deleted.",
        "content": {EVENT_STREAM: {"schema": {"type": "string"}}},
    }
}
_AFTER = {
    "name": "after",
    "in": "query",
    "schema": {"type": "string", "maxLength": 40},
    "description": "A position: the id of the last event you have.",
}

router = APIRouter(prefix=API, tags=["events"])


@router.get("/runs/{run}/journal", operation_id="list_events")
def list_events(
    project: OpenProject,
    run: RunName,
    after: Annotated[int, Query(ge=0, lt=10**18, description="Only later commits.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000, description="Commits per page.")] = 100,
    texts: Annotated[bool, Query(description="Long texts too, not only their digests.")] = False,
) -> EventPage:
    """List the events of a run as its journal has them, oldest first."""
    row = project.store.row(run)
    found: list[EventDocument] = []
    events = events_of(project, row, after=after, whole=texts)
    for count, (seq, group) in enumerate(groupby(events, key=lambda pair: pair[0])):
        if count == limit:
            return EventPage(events=found, next=found[-1].seq)
        found += [EventDocument(seq=seq, event=ev.to_json(event)) for _, event in group]
    return EventPage(events=found, next=None)


@router.get(
    "/events",
    operation_id="stream_events",
    response_class=Response,
    responses=_STREAM,
    openapi_extra={"parameters": [_AFTER]},
)
async def stream_all(request: Request) -> Response:
    """Stream what changes in any run, whichever process drives it."""
    return await event_stream(request, None)


@router.get(
    "/runs/{run}/events",
    operation_id="stream_run_events",
    response_class=Response,
    responses=_STREAM,
    openapi_extra={"parameters": [_AFTER]},
)
async def stream_run(request: Request, run: RunName) -> Response:
    """Stream what changes in a run, whichever process drives it."""
    return await event_stream(request, run)
