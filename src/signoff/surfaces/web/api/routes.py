"""The REST interface: its routes, what they take, and its description in OpenAPI 3.1.

What they answer are the documents of `app/json_documents.py`.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from http import HTTPStatus
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, cast
from urllib.parse import quote

from fastapi import APIRouter, FastAPI, Header, Query, Request, Response
from fastapi import Path as PathPart
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ConfigDict, Field, StrictBool, TypeAdapter

from signoff import plugins
from signoff._version import __version__
from signoff.app import json_documents as docs
from signoff.app.people import answering
from signoff.app.runs import history as run_history
from signoff.app.runs import runs
from signoff.app.runs.show import show
from signoff.app.runs.start import StartRequest, plan_named
from signoff.app.runs.targets import REVIEW, Catalog, CatalogEntry, catalog, find_workflow
from signoff.app.settings.project import Project
from signoff.app.workers.hand_over import continue_run, ensure_worker, hand_over
from signoff.core import events as ev
from signoff.core import graph
from signoff.core.errors import RequestClosed, SignoffError
from signoff.core.outcome import Status
from signoff.core.severity import Severity
from signoff.core.words import Label, read_labels
from signoff.core.workflow import Workflow
from signoff.notation import NotationOption
from signoff.review.pure.history import ReviewHistory, change_to_json, finding_to_json
from signoff.runtime.paths import fresh_name
from signoff.runtime.store_port import InboxItem, RunRow
from signoff.surfaces.web.access import Caller
from signoff.surfaces.web.idempotency import IdempotencyKeys
from signoff.surfaces.web.live import EVENT_STREAM, event_stream
from signoff.surfaces.web.problems import PROBLEM_TYPE
from signoff.surfaces.web.route_params import (
    API,
    SANDBOX,
    Decider,
    OpenProject,
    Operator,
    followed_runs,
)

Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        description="Any text of your own, unique to this request. If you get no answer, send "
        "the request again with the same key: it counts once.",
    ),
]

TARGET_HELP = (
    "A workflow of the list, named as the command line takes it: its name, its `target`, "
    "`scheme:name`, or its file or module."
)


MOST_ROWS, MOST_DAYS = 200, 36_500

RunName = Annotated[str, PathPart(max_length=100, description="The name of a run.")]
Round = Annotated[int | None, Query(ge=1, le=1_000_000)]

Number = Annotated[
    int, PathPart(ge=1, lt=10**answering.LONGEST_NUMBER, description="A request's number.")
]
TITLE_CHARACTERS = 80
LISTED_CHARACTERS = 200
"""How much of a prompt a list has; a prompt to an agent can fill a page."""
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events named `change`; their data has `runs`, the runs that "
        "have changed, each with `seq`, its latest commit, and `everything`, whether anything else "
        "may have changed too. Their id is a position: connect again with it as `Last-Event-ID`, "
        "or `after`, and you get what you missed. `gone` says that the run was deleted.",
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


class ProblemDocument(docs.SurfaceDocument):
    """What went wrong (RFC 9457)."""

    type: str
    """`urn:signoff:problem:` and its kind."""
    title: str
    status: int
    kind: str
    """The kind of the error, such as `StaleApproval`; stable."""
    detail: str
    """What is wrong and how to fix it, for people."""
    remedies: list[docs.Json]
    """What fixes it, as data; each has a `kind`."""
    problems: list[docs.Json]
    """Each single mistake: `where`, `what`, `fix`."""


class AnswerDocument(BaseModel):
    """An answer to a request, bound to what was shown."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"digest": "3f2a9c01b7de", "value": True, "text": ""}]},
    )

    digest: str = Field(
        min_length=12,
        max_length=64,
        description="`digest` of the request you were shown, or its first characters. If the "
        "request shows something else by now, the answer is refused with 412.",
    )
    value: StrictBool | str | dict[str, str | list[str]] = Field(
        description="true or false approves or rejects; else the label for a choice, labels by "
        "header for several questions, a text for anything else."
    )
    text: str = Field("", max_length=100_000, description="The reason or a comment.")
    resume: bool = Field(True, description="Whether a worker continues the run at once.")


class StartDocument(BaseModel):
    """What to start."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"target": "docs", "options": {"goal": "docs-goal.yaml"}}]},
    )

    target: str = Field(max_length=500, description=TARGET_HELP)
    name: str | None = Field(None, max_length=100, description="The run's name; else one is made.")
    params: docs.Json = Field(default_factory=dict, description="Values by parameter.")
    options: dict[str, str | bool | list[str]] = Field(
        default_factory=dict, description="Options of the workflow's notation, by name."
    )
    limits: dict[str, float] = Field(
        default_factory=dict, description="usd, tokens, calls or seconds.", examples=[{"usd": 2.5}]
    )


class CancelDocument(BaseModel):
    """Why a run is cancelled."""

    model_config = ConfigDict(extra="forbid")

    why: str = Field("", max_length=10_000)


@router.get("/runs", operation_id="list_runs", tags=["runs"])
def list_runs(
    project: OpenProject,
    status: Annotated[list[Status] | None, Query(description="Only these; repeatable.")] = None,
    workflow: Annotated[str, Query(max_length=200, description="Only this workflow.")] = "",
    text: Annotated[str, Query(max_length=200, description="Part of a name or a reason.")] = "",
    cursor: Annotated[str, Query(max_length=18, description="`next` of the page before.")] = "",
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 50,
) -> docs.RunPage:
    """List runs, newest first."""
    chosen = runs.RunFilter(tuple(status or ()), workflow, text)
    page = runs.list_page(project, chosen, cursor=cursor, limit=limit)
    return {"runs": [*map(docs.run_info, page.rows)], "next": page.next}


@router.get("/runs/{run}", operation_id="get_run", tags=["runs"])
def get_run(project: OpenProject, run: RunName) -> docs.RunDocument:
    """Get a run: its status, requests, decisions, steps and spend."""
    details = show(project, project.store.row(run).name)
    # Programs on other machines get no paths of this one; files are named from the run's folder.
    document = details.to_json() | {"result": details.result_in(PurePosixPath())}
    del document["directory"]
    return cast(docs.RunDocument, document)


@router.post("/runs/{run}/cancel", operation_id="cancel_run", tags=["runs"])
def cancel_run(
    project: OpenProject, caller: Operator, run: RunName, body: CancelDocument | None = None
) -> docs.RunInfo:
    """Cancel a run; when this answers, nothing of it is active any more."""
    why = body.why if body is not None else ""
    # This thread has no event loop, and the caller is told when nothing of the run is active.
    asyncio.run(runs.cancel(project, run, f"by {caller.name}{why and f': {why}'}"))
    return _info(project, run)


@router.post("/runs/{run}/resume", operation_id="resume_run", tags=["runs"], status_code=202)
def resume_run(project: OpenProject, _caller: Operator, run: RunName) -> docs.RunInfo:
    """Hand a run that rests to a worker, which continues it."""
    continue_run(project, project.store.row(run).name)
    return _info(project, run)


def _info(project: OpenProject, run: str) -> docs.RunInfo:
    return docs.run_info(runs.current_row(project, project.store.row(run)))


@router.get("/runs/{run}/journal", operation_id="list_events", tags=["events"])
def list_events(
    project: OpenProject,
    run: RunName,
    after: Annotated[int, Query(ge=0, lt=10**18, description="Only later commits.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000, description="Commits per page.")] = 100,
    texts: Annotated[bool, Query(description="Long texts too, not only their digests.")] = False,
) -> docs.EventPage:
    """List the events of a run as its journal has them, oldest first."""
    row = project.store.row(run)
    found: list[docs.EventDocument] = []
    events = run_history.events_of(project, row, after=after, whole=texts)
    for count, (seq, group) in enumerate(groupby(events, key=lambda pair: pair[0])):
        # A page ends with a whole commit: the position in `next` names commits, not events.
        if count == limit:
            return {"events": found, "next": found[-1]["seq"]}
        found += [{"seq": seq, "event": ev.to_json(event)} for _, event in group]
    return {"events": found, "next": None}


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
) -> docs.FindingPage:
    """List the findings of a review and what became of each, those that block first."""
    with _review(request, project, run) as (_, history):
        found = run_history.select_findings(
            history, severity or (), read_labels(status or ()), constraint or ()
        )
        documents = [finding_to_json(history, each) for each in found]
    return cast(docs.FindingPage, {"findings": documents})


@router.get("/runs/{run}/diffs", operation_id="list_diffs", tags=["review"])
def list_diffs(
    request: Request,
    project: OpenProject,
    run: RunName,
    round: Annotated[Round, Query(description="Only what the fixes of this round changed.")] = None,  # noqa: A002  # the name of the parameter
    first: Annotated[Round, Query(alias="from", description="From what it reviewed.")] = None,
    last: Annotated[Round, Query(alias="to", description="To what it reviewed.")] = None,
) -> docs.ChangeList:
    """Show what each round changed, or with `from` or `to` the changes between two versions."""
    with _review(request, project, run) as (row, history):
        pairs = run_history.changes(history, row.name, round, first, last)
        documents = [change_to_json(history, *pair) for pair in pairs]
    return cast(docs.ChangeList, {"changes": documents})


@router.get("/runs/{run}/artifact", operation_id="get_artifact", tags=["review"])
def get_artifact(
    request: Request,
    project: OpenProject,
    run: RunName,
    round: Annotated[Round, Query(description="The version that this round reviewed.")] = None,  # noqa: A002  # the name of the parameter
) -> docs.ArtifactDocument:
    """Get the artifact: the version that passed, else the best reviewed one, else the latest."""
    with _review(request, project, run) as (row, history):
        version = run_history.artifact(history, row.name, round)
        files = {history.name_of(path): text for path, text in version.files.items()}
        passed = history.passed and version == history.result
        approved_by = history.approved_by if passed else ""
    return {
        "run": row.name,
        "version": version.number,
        "passed": passed,
        "approved_by": approved_by or None,
        "files": files,
    }


@contextmanager
def _review(request: Request, project: Project, run: str) -> Iterator[tuple[RunRow, ReviewHistory]]:
    """Lends the history of a run's review, which is kept while someone asks for it."""
    row = project.store.row(run)
    with followed_runs(request).look(project, row) as followed:
        if followed.review is None:
            raise run_history.without_review(row)
        yield row, followed.review


@router.get("/exports", operation_id="list_formats", tags=["exports"])
def list_formats() -> list[str]:
    """List the formats in which a run can be exported."""
    return sorted(plugins.paths("exports"))


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
    format: Annotated[str, PathPart(max_length=100, description="One of the formats.")],  # noqa: A002  # part of the address
) -> Response:
    """Export a run; the same run gives the same bytes."""
    name = project.store.row(run).name
    text = "".join(run_history.export(project, format, name))
    ending = {"html": "html", "markdown": "md"}.get(format, f"{format}.json")
    headers = {
        "content-disposition": f"attachment; filename*=utf-8''{quote(name)}.{ending}",
        "content-security-policy": SANDBOX,
    }
    # As text whatever it is: a document with texts of models must not be rendered by a browser.
    return Response(text.encode("utf-8", "replace"), media_type="text/plain", headers=headers)


@router.get("/spend", operation_id="get_spend", tags=["spend"])
def get_spend(
    project: OpenProject,
    days: Annotated[
        float, Query(gt=0, le=MOST_DAYS, description="Only runs that changed in the last days.")
    ] = 30,
) -> docs.SpendDocument:
    """Show what runs have cost, by workflow, agent and model, the most expensive first.

    A run counts with everything it had cost when it last came to rest.
    """
    since, totals = runs.spending(project, days)
    return {"since": since, "lines": [*map(docs.spend_line, totals)]}


@router.get("/workflows", operation_id="list_workflows", tags=["workflows"])
def list_workflows(project: OpenProject) -> docs.WorkflowList:
    """List the workflows of the project, then those of installed packages.

    `review` reviews files that exist, by its options.
    """
    found = catalog_of(project)
    entries = [described(project, each) for each in found.entries]
    workflows = [docs.document(docs.WorkflowInfo, each) for each in entries]
    return {"workflows": workflows, "problems": [*map(str, found.problems)]}


@router.get("/workflow", operation_id="get_workflow", tags=["workflows"])
def get_workflow(
    project: OpenProject,
    target: Annotated[str, Query(max_length=500, description=TARGET_HELP)],
) -> docs.WorkflowDocument:
    """Get a workflow: its parameters, the options it takes, and its graph."""
    entry = described(project, catalog_of(project).find(target, project.home.root))
    if entry.target == REVIEW:
        # Its graph depends on its options.
        own = next(each.review_options for each in plugins.notations() if each.review)
        parts: docs.Json = {"params": [], "graph": {}, "options": _described(own)}
    else:
        workflow = find_workflow(entry.target, project.home.root, os.environ)
        data = graph.data(workflow)
        options = start_options(workflow)
        parts = {"params": data.pop("parameters"), "graph": data, "options": _described(options)}
    return docs.document(docs.WorkflowDocument, entry, **parts)


def catalog_of(project: Project) -> Catalog:
    """Returns what can be started in a project."""
    return catalog(project.home, project.settings, project.agents)


def described(project: Project, entry: CatalogEntry) -> CatalogEntry:
    """Returns an entry with the description of its workflow."""
    # Those of the project are read from their files; importing them to list them could run code.
    if entry.description or entry.own or entry.target == REVIEW:
        return entry
    return entry._replace(description=_shipped_description(entry.target, project.home.root))


@cache
def _shipped_description(target: str, root: Path) -> str:
    """Returns what a shipped workflow is for; it has to be imported to find out, once."""
    try:
        return find_workflow(target, root, os.environ).description
    except SignoffError:
        return ""


def start_options(workflow: Workflow) -> list[NotationOption]:
    """Returns the options that a start of a workflow takes."""
    notation = plugins.notation(workflow.notation)
    options = notation.options if notation is not None else ()
    return [each for each in options if "run" in each.commands]


def _described(options: Sequence[NotationOption]) -> list[docs.Json]:
    return [
        {"name": each.name, "kind": each.kind.name.lower(), "description": each.help}
        for each in options
    ]


@router.post("/runs", operation_id="start_run", tags=["runs"], status_code=201)
def start_run(
    request: Request,
    response: Response,
    project: OpenProject,
    caller: Operator,
    body: StartDocument,
    key: Key = None,
) -> docs.RunInfo:
    """Start a run of one of the workflows; a worker drives it, whatever becomes of this server."""
    # Everything is checked before anything is written.
    asked_for = StartRequest(body.target, body.params, body.options, body.limits)
    planned = plan_named(project.home.root, os.environ, asked_for, agent=caller.agent)
    keys: IdempotencyKeys = request.app.state.keys
    asked, now = f"start {body.model_dump_json()}", project.clock.now()
    new_name = body.name or fresh_name(planned.target.workflow.name)
    with keys.request(caller.name, key, asked, new_name, now) as (name, repeated):
        if repeated and project.has_run(name):
            response.status_code = HTTPStatus.OK
        else:
            hand_over(project, planned, name=name)
    ensure_worker(project)
    response.headers["location"] = f"{API}/runs/{name}"
    return docs.run_info(project.store.row(name))


@router.get("/inbox", operation_id="list_requests", tags=["inbox"])
def list_requests(
    project: OpenProject,
    run: Annotated[str | None, Query(max_length=100, description="Only of this run.")] = None,
) -> list[docs.RequestInfo]:
    """List pending requests, oldest first, each with the beginning of its prompt."""
    return [
        _listed(answering.request_line(project, line))
        for line in answering.open_requests(project, run)
    ]


@router.get("/inbox/{number}", operation_id="get_request", tags=["inbox"])
def get_request(project: OpenProject, number: Number) -> docs.RequestDocument:
    """Get a request: what is shown, what can be answered, and the digest to answer with."""
    return answering.request_to_json(project, project.store.item(number))


@router.post("/inbox/{number}/answer", operation_id="answer_request", tags=["inbox"])
def answer_request(
    request: Request,
    project: OpenProject,
    caller: Decider,
    number: Number,
    body: AnswerDocument,
    key: Key = None,
) -> docs.RequestDocument:
    """Answer a request, once, bound to what was shown.

    The name of the session or the token is recorded as the author. An answer to something else
    than what is shown now is refused with 412, a second answer with 409.
    """
    keys: IdempotencyKeys = request.app.state.keys
    asked, now = f"answer {number} {body.model_dump_json()}", project.clock.now()
    with keys.request(caller.name, key, asked, str(number), now) as claim:
        item = _record(project, number, body, caller, repeated=claim.repeated)
    runs.catch_up(project, item.run, repair=False)
    if body.resume:
        continue_run(project, item.run)
    return answering.request_to_json(project, project.store.item(number))


def _listed(line: docs.RequestInfo) -> docs.RequestInfo:
    prompt = line["prompt"]
    title = line["title"] or next(iter(prompt.strip().splitlines()), "")
    line["title"], line["prompt"] = _cut(title, TITLE_CHARACTERS), _cut(prompt, LISTED_CHARACTERS)
    return line


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _record(
    project: Project, number: int, body: AnswerDocument, caller: Caller, *, repeated: bool
) -> InboxItem:
    try:
        answer = answering.AnswerInput(body.value, body.text, caller.name, body.digest)
        if isinstance(body.value, bool):
            return answering.decide(project, number, answer, yes=body.value)
        return answering.record_answer(project, number, answer)
    except RequestClosed:
        # The first request may have been recorded although its reply was lost on the way.
        item = project.store.item(number)
        if repeated and item.answered_by == caller.name and _same(item, body.text):
            return item
        raise


def _same(item: InboxItem, text: str) -> bool:
    """Tells whether the recorded answer is the one that is repeated: the key says what it was."""
    return item.answer is not None and json.loads(item.answer).get("text") == text


_TEXT = """\
The use cases of signoff as resources, for programs on this machine.

Send a bearer token (`Authorization: Bearer ...`). Its scope says what it may do: `read`; `operate`
starts, cancels and resumes runs; `decide` also answers requests. A token for an agent never has
`decide`.

Errors are problem details with a stable `kind`. Lists have a `next` that is the `cursor` of the
following page. Starts and answers take an `Idempotency-Key`.
"""
_TAGS = {
    "workflows": "What can be started.",
    "runs": "Start, follow, cancel and resume runs.",
    "review": "What a review has found and changed.",
    "inbox": "Requests to humans, and their answers.",
    "events": "What happens, as it happens and as it was recorded.",
    "spend": "What runs have cost.",
    "exports": "A whole run as one document.",
}
_PROBLEM = {
    "description": "Refused or failed; `kind` says why.",
    "content": {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}},
}


def describe(app: FastAPI) -> dict[str, Any]:
    """Returns the description of all routes, as the clients of an application see it."""
    if app.openapi_schema is not None:
        return app.openapi_schema
    document = get_openapi(
        title="signoff",
        version=__version__,
        summary="Durable reviews of AI work, over HTTP.",
        description=_TEXT,
        routes=app.routes,
        tags=[{"name": name, "description": text} for name, text in _TAGS.items()],
    )
    parts = document.setdefault("components", {})
    schemas = parts.setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["ProblemDocument"] = TypeAdapter(ProblemDocument).json_schema()
    for whole, info in (("RunDocument", "RunInfo"), ("WorkflowDocument", "WorkflowInfo")):
        # A type that adds fields to another does not have the descriptions of the inherited ones.
        schemas[whole]["properties"] |= schemas[info]["properties"]
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}]
    for path in document["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = _PROBLEM
    app.openapi_schema = document
    return document
