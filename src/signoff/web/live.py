"""Server-sent events: what changed, as it happens, for open pages and for programs.

An event says which runs have changed and how far they are; readers fetch what they show of them.
Its id is a position, a run and the number of a commit in its journal. A reader that connects
again with its last id gets everything since.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse

from signoff.documents.control_characters import json_text
from signoff.errors import StoreError, UnknownName
from signoff.runtime.store_port import Position, RunId, RunRow
from signoff.web.feed import Batch, LiveFeed, NewsBox
from signoff.web.guard import CHECK, CallerCheck

RETRY_MILLISECONDS = 1000
EVENT_STREAM = "text/event-stream"

_POSITION = re.compile(r"(\d{1,18})\.(\d{1,18})", re.ASCII)

router = APIRouter(include_in_schema=False)


@router.get("/events")
async def all_events(request: Request) -> Response:
    """Streams the changes of all runs."""
    return await event_stream(request, None)


@router.get("/runs/{run}/events")
async def run_events(request: Request, run: str) -> Response:
    """Streams the changes of one run."""
    return await event_stream(request, run)


async def event_stream(request: Request, run: str | None) -> Response:
    """Returns the stream of changes of one run or of all."""
    feed: LiveFeed = request.app.state.feed
    if run is not None and not await feed.exists(run):
        # Browsers stop connecting again only after this answer.
        return Response(status_code=HTTPStatus.NO_CONTENT)
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    check: CallerCheck = request.scope[CHECK]
    parts = _parts(feed, run, position_of(request), check)
    return StreamingResponse(parts, media_type=EVENT_STREAM, headers=headers)


def position_of(request: Request) -> Position | None:
    """Returns the position of a reader: of its last event, or of its page."""
    text = request.headers.get("last-event-id") or request.query_params.get("after", "")
    found = _POSITION.fullmatch(text)
    return (RunId(int(found[1])), int(found[2])) if found else None


def position_text(position: Position | None) -> str:
    """Returns a position as the id of an event."""
    return f"{position[0]}.{position[1]}" if position is not None else ""


async def _parts(
    feed: LiveFeed, run: str | None, after: Position | None, check: CallerCheck
) -> AsyncIterator[bytes]:
    with feed.subscribe(run) as box:
        try:
            missed = await feed.missed(run, after)
            here = position_text(feed.position(run))
            yield f"retry: {RETRY_MILLISECONDS}\nid: {here}\n\n".encode()
            if missed is not None:
                yield _event(missed, run)
            async for part in _follow(feed, box, check):
                yield part
        except UnknownName:
            yield b"event: gone\ndata: {}\n\n"
        except StoreError:
            # The status is sent already. The reader connects again, and may be answered then.
            return


async def _follow(feed: LiveFeed, box: NewsBox, check: CallerCheck) -> AsyncIterator[bytes]:
    while True:
        batch = await box.take()
        # A session may have been closed, or a token revoked, since the connection was opened.
        if box.closed or not feed.may_listen(check):
            return
        if batch is None:
            yield b": still here\n\n"
            continue
        if batch.everything and box.run is not None and not await feed.exists(box.run):
            raise UnknownName("run", box.run)
        yield _event(batch, box.run)


def _event(batch: Batch, run: str | None) -> bytes:
    if batch.event is None:
        batch.event = _event_text(batch, run)
    return batch.event


def _event_text(batch: Batch, run: str | None) -> bytes:
    own = [row for row in batch.rows if row.name == run]
    position = (own[0].id, own[0].head) if own else batch.last if run is None else None
    lines = [f"id: {position_text(position)}"] if position is not None else []
    data = {"runs": [change_to_json(row) for row in batch.rows], "everything": batch.everything}
    # JSON without line breaks is one line of data.
    lines += ["event: change", f"data: {json_text(data)}", "", ""]
    return "\n".join(lines).encode("utf-8", "replace")


def change_to_json(row: RunRow) -> dict[str, Any]:
    """Returns what an event says about a run."""
    return {
        "run": row.name,
        "seq": row.head,
        "status": row.status.value,
        "step": row.step,
        "round": row.iteration,
    }
