"""Runs: list, show, cancel and resume them; their events, reviews, exports and cost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from signoff import plugins
from signoff.app.hand_over import continue_run
from signoff.app.history import (
    artifact,
    changes,
    events_of,
    export,
    select_findings,
    without_review,
)
from signoff.app.project import Project
from signoff.app.runs import (
    RunFilter,
    cancel,
    current_row,
    list_page,
    run_to_json,
    spending,
    total_to_json,
)
from signoff.app.show import show
from signoff.core import events as ev
from signoff.core.outcome import Status
from signoff.core.severity import Severity
from signoff.core.words import Label, read_labels
from signoff.review.history import ReviewHistory, change_to_json, finding_to_json
from signoff.runtime.store_port import RunRow
from signoff.web.api.documents import (
    API,
    ArtifactDocument,
    CancelDocument,
    ChangeList,
    EventDocument,
    EventPage,
    FindingPage,
    RunDocument,
    RunInfo,
    RunPage,
    SpendDocument,
)
from signoff.web.api.inbox import remote_request
from signoff.web.live import EVENT_STREAM, event_stream
from signoff.web.route_params import OpenProject, Operator, followed_runs

MOST_ROWS, MOST_DAYS = 200, 36_500

RunName = Annotated[str, Path(max_length=100, description="The name of a run.")]
Round = Annotated[int | None, Query(ge=1, le=1_000_000)]

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
_DOCUMENT: dict[int | str, dict[str, Any]] = {
    200: {"description": "The document.", "content": {"text/plain": {"schema": {"type": "string"}}}}
}

router = APIRouter(prefix=API)


@router.get("/runs", operation_id="list_runs", tags=["runs"])
def list_runs(
    project: OpenProject,
    status: Annotated[list[Status] | None, Query(description="Only these; repeatable.")] = None,
    workflow: Annotated[str, Query(max_length=200, description="Only this workflow.")] = "",
    text: Annotated[str, Query(max_length=200, description="Part of a name or a reason.")] = "",
    cursor: Annotated[str, Query(max_length=18, description="`next` of the page before.")] = "",
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 50,
) -> RunPage:
    """List runs, newest first."""
    chosen = RunFilter(tuple(status or ()), workflow, text)
    page = list_page(project, chosen, cursor=cursor, limit=limit)
    return RunPage.model_validate({"runs": map(run_to_json, page.rows), "next": page.next})


@router.get("/runs/{run}", operation_id="get_run", tags=["runs"])
def get_run(project: OpenProject, run: RunName) -> RunDocument:
    """Get a run: its status, requests, decisions, steps and spend."""
    details = show(project, project.store.row(run).name)
    # Programs on other machines get no paths of this one; files are named from the run's folder.
    document = details.to_json() | {"result": details.result_in(PurePosixPath())}
    del document["directory"]
    document["inbox"] = [remote_request(each) for each in document["inbox"]]
    return RunDocument.model_validate(document)


@router.post("/runs/{run}/cancel", operation_id="cancel_run", tags=["runs"])
def cancel_run(
    project: OpenProject, caller: Operator, run: RunName, body: CancelDocument | None = None
) -> RunInfo:
    """Cancel a run; when this answers, nothing of it is active any more."""
    why = body.why if body is not None else ""
    asyncio.run(cancel(project, run, f"by {caller.name}{why and f': {why}'}"))
    return _info(project, run)


@router.post("/runs/{run}/resume", operation_id="resume_run", tags=["runs"], status_code=202)
def resume_run(project: OpenProject, _caller: Operator, run: RunName) -> RunInfo:
    """Hand a run that rests to a worker, which continues it."""
    continue_run(project, project.store.row(run).name)
    return _info(project, run)


def _info(project: OpenProject, run: str) -> RunInfo:
    return RunInfo.model_validate(run_to_json(current_row(project, project.store.row(run))))


@router.get("/runs/{run}/journal", operation_id="list_events", tags=["events"])
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
    tags=["events"],
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
    tags=["events"],
    response_class=Response,
    responses=_STREAM,
    openapi_extra={"parameters": [_AFTER]},
)
async def stream_run(request: Request, run: RunName) -> Response:
    """Stream what changes in a run, whichever process drives it."""
    return await event_stream(request, run)


@router.get("/runs/{run}/findings", operation_id="list_findings", tags=["review"])
def list_findings(
    request: Request,
    project: OpenProject,
    run: RunName,
    severity: Annotated[list[Severity] | None, Query(description="Only these.")] = None,
    status: Annotated[
        list[Literal["open"] | Label] | None,
        Query(description="Only these; `open` is all that are open."),
    ] = None,
    constraint: Annotated[list[str] | None, Query(description="Only of these.")] = None,
) -> FindingPage:
    """List the findings of a review and what became of each, those that block first."""
    with _review(request, project, run) as (_, history):
        found = select_findings(
            history, severity or (), read_labels(status or ()), constraint or ()
        )
        documents = [finding_to_json(history, each) for each in found]
    return FindingPage.model_validate({"findings": documents})


@router.get("/runs/{run}/diffs", operation_id="list_diffs", tags=["review"])
def list_diffs(
    request: Request,
    project: OpenProject,
    run: RunName,
    round: Annotated[Round, Query(description="Only what the fixes of this round changed.")] = None,  # noqa: A002  # the name of the parameter
    first: Annotated[Round, Query(alias="from", description="From what it reviewed.")] = None,
    last: Annotated[Round, Query(alias="to", description="To what it reviewed.")] = None,
) -> ChangeList:
    """Show what each round changed, or with `from` or `to` the changes between two versions."""
    with _review(request, project, run) as (row, history):
        pairs = changes(history, row.name, round, first, last)
        documents = [change_to_json(history, *pair) for pair in pairs]
    return ChangeList.model_validate({"changes": documents})


@router.get("/runs/{run}/artifact", operation_id="get_artifact", tags=["review"])
def get_artifact(
    request: Request,
    project: OpenProject,
    run: RunName,
    round: Annotated[Round, Query(description="The version that this round reviewed.")] = None,  # noqa: A002  # the name of the parameter
) -> ArtifactDocument:
    """Get the artifact: the version that passed, else the best reviewed one, else the latest."""
    with _review(request, project, run) as (row, history):
        version = artifact(history, row.name, round)
        files = {history.name_of(path): text for path, text in version.files.items()}
        passed = history.passed and version == history.result
        approved_by = history.approved_by if passed else ""
    return ArtifactDocument(
        run=row.name,
        version=version.number,
        passed=passed,
        approved_by=approved_by or None,
        files=files,
    )


@contextmanager
def _review(request: Request, project: Project, run: str) -> Iterator[tuple[RunRow, ReviewHistory]]:
    """Lends the history of a run's review, which is kept while someone asks for it."""
    row = project.store.row(run)
    with followed_runs(request).look(project, row) as followed:
        if followed.review is None:
            raise without_review(row)
        yield row, followed.review


@router.get("/exports", operation_id="list_formats", tags=["exports"])
def list_formats() -> list[str]:
    """List the formats in which a run can be exported."""
    return sorted(plugins.export_paths())


@router.get(
    "/runs/{run}/exports/{format}",
    operation_id="export_run",
    tags=["exports"],
    response_class=Response,
    responses=_DOCUMENT,
)
def export_run(
    project: OpenProject,
    run: RunName,
    format: Annotated[str, Path(max_length=100, description="One of the formats.")],  # noqa: A002  # part of the address
) -> Response:
    """Export a run; the same run gives the same bytes."""
    text = "".join(export(project, format, project.store.row(run).name))
    # As text whatever it is: a document with texts of models must not be rendered by a browser.
    return Response(text.encode("utf-8", "replace"), media_type="text/plain; charset=utf-8")


@router.get("/spend", operation_id="get_spend", tags=["spend"])
def get_spend(
    project: OpenProject,
    days: Annotated[
        float, Query(gt=0, le=MOST_DAYS, description="Only runs that changed in the last days.")
    ] = 30,
) -> SpendDocument:
    """Show what runs have cost, by workflow, agent and model, the most expensive first.

    A run counts with everything it had cost when it last came to rest.
    """
    since, totals = spending(project, days)
    lines = [*map(total_to_json, totals)]
    return SpendDocument.model_validate({"since": since, "lines": lines})
