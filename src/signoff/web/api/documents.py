"""The documents of the REST interface, and its description in OpenAPI 3.1."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import FastAPI, Header
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from signoff._version import __version__
from signoff.core.outcome import Status
from signoff.core.requests import ItemState, RequestKind
from signoff.core.severity import Severity
from signoff.core.words import Label
from signoff.web.problems import PROBLEM_TYPE

API = "/api/v1"

Json = dict[str, Any]
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


class ProblemDocument(BaseModel):
    """What went wrong (RFC 9457)."""

    type: str = Field(examples=["urn:signoff:problem:StaleApproval"])
    title: str
    status: int
    kind: str = Field(description="The kind of the error; stable.", examples=["StaleApproval"])
    detail: str = Field(description="What is wrong and how to fix it, for people.")
    remedies: list[Json] = Field(description="What fixes it, as data; each has a `kind`.")
    problems: list[Json] = Field(description="Each single mistake: `where`, `what`, `fix`.")


class RunInfo(BaseModel):
    """A run as a list shows it."""

    run: str = Field(description="Its name.", examples=["docs-1117-091500-3fa2c1"])
    workflow: str
    status: Status
    step: str | None = Field(description="The step it is at.")
    round: int = Field(description="The round it is in, from 1.")
    reason: str = Field(description="Why it is not running, in words.")
    target: str = Field(description="How its workflow was named when it was started.")
    due_at: float | None = Field(description="When it continues by itself; seconds since 1970.")
    created_at: float
    updated_at: float


class RunPage(BaseModel):
    """Some runs, newest first."""

    runs: list[RunInfo]
    next: str | None = Field(description="The `cursor` of the following page; null on the last.")


class RunDocument(RunInfo):
    """Everything about a run, except its texts."""

    model_config = ConfigDict(extra="allow")

    stop_reason: Json | None = Field(description="Why it stopped, as data with a `kind`.")
    error: Json | None = Field(description="The error that stopped it, with its `kind`.")
    remedies: list[Json] = Field(description="How to continue it; each has a `kind`.")
    params: Json
    inbox: list[RequestDocument] = Field(description="Its pending requests.")
    decisions: list[Json] = Field(description="What humans decided, and who they are.")
    spend: Json = Field(description="Calls, tokens and dollars; null where a call did not say.")
    limits: Json
    steps: list[Json] = Field(description="Every step that was entered, in order; `times` counts.")
    ledger: list[Json] = Field(description="The spend by step, agent and model.")
    result: Json | None = Field(
        description="The file that it leaves to its user, named from the run's folder."
    )
    definition: str = Field(description="The digest of the workflow as it was started.")
    owner: str | None = Field(description="The process that drives it, as the database knows it.")
    driver: Json | None = Field(description="Its `host` and `pid`, while it lives.")
    progress: Json | None = Field(None, description="How far its current step is.")


class RequestInfo(BaseModel):
    """A pending request as a list shows it."""

    number: int
    run: str
    step: str
    kind: RequestKind
    title: str = Field(description="Its title, or else the first line of its prompt.")
    prompt: str = Field(description="Its beginning; the request itself has all of it.")
    opened_at: float
    deadline: float | None


class RequestDocument(BaseModel):
    """A request to a human: what is shown, and what can be answered."""

    model_config = ConfigDict(extra="allow")

    number: int
    run: str
    step: str
    kind: RequestKind
    title: str
    prompt: str
    options: list[Json] = Field(
        description="What can be chosen, for a choice: `label`, `description`, and whether the "
        "answer needs a text (`requires_input`)."
    )
    questions: list[Json] = Field(description="What is asked, for several questions.")
    shown: Json = Field(description="What the answer is bound to.")
    path: str | None = Field(description="The file of the run that an approval is about.")
    edits: str | None = Field(description="`accept` if that file may be edited first.")
    schema_: Json | None = Field(
        alias="schema", description="The JSON schema of a response, if it has one."
    )
    question_id: str | None = Field(description="The workflow's own name of the question.")
    presence: bool = Field(description="Whether an approval needs a passkey, on the page.")
    default: Any = Field(description="The answer that counts at the deadline.")
    at_deadline: str | None = Field(description="What happens then, in words.")
    digest: str = Field(description="Of what is shown; every answer has to carry it.")
    opened_at: float
    deadline: float | None
    state: ItemState
    answer: Json | None = Field(description="The answer, its author and its time, once given.")


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


class FindingDocument(BaseModel):
    """A finding of a review, and what became of it."""

    model_config = ConfigDict(extra="allow")

    id: str
    constraint: str
    rule: str
    severity: Severity
    status: Label = Field(description="What became of it.")
    finding: str = Field(description="What is wrong, in the critic's words.")
    quote: str = Field(description="The words of the artifact that it is about.")
    path: str = Field(description="The file it is about.")
    line: int | None = Field(description="Where it is in the latest version.")
    first: int = Field(description="The first round that reported it.")
    last: int = Field(description="The last round that reported it.")
    answered_in: int | None = Field(description="The version whose change answered it.")
    flagged_by: list[str] = Field(description="The critics that reported it.")
    history: list[tuple[int, Label]] = Field(description="What became of it, round by round.")
    not_reported_again: bool = Field(
        False, description="Whether it is still open although no critic reported it again."
    )
    awaiting_sign_off: bool = Field(
        False, description="Whether a human asked for the fix and has yet to decide about it."
    )
    returns: int = Field(description="How often it came back after it was fixed.")
    location: str = Field(description="Where it is, in the critic's words.")
    column: int | None
    end_line: int | None
    end_column: int | None
    artifact: str = Field(description="The digest of the text that it was last reported in.")
    unverified: bool = Field(description="Whether its quote is nowhere in the artifact.")
    edit: Json | None = Field(description="The exact edit that its critic suggests.")
    suggested_fix: str = Field("", description="What its critic suggests, in words.")
    edited: bool = Field(False, description="Whether its passage was edited since.")
    dismissed_by: str | None = Field(description="Who dismissed it.")
    reason: str = Field("", description="Why it was dismissed.")
    decision: str = Field("", description="What a human decided about it.")


class FindingPage(BaseModel):
    """The findings of a review, those that block first."""

    findings: list[FindingDocument]


class HunkDocument(BaseModel):
    """Some changed lines."""

    diff: str = Field(examples=["@@ -1 +1 @@\n-The best coffee.\n+Good coffee."])
    findings: list[str] = Field(description="The ids of the findings that it answers.")
    added: int
    removed: int


class FileChange(BaseModel):
    """What changed in one file."""

    path: str
    hunks: list[HunkDocument]


class ChangeDocument(BaseModel):
    """What changed from one version to another."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    round: int
    first: int = Field(alias="from", description="The number of the version before.")
    last: int = Field(alias="to", description="The number of the version after.")
    step: str
    kind: str
    agent: str | None = Field(description="Who wrote it; null if exact edits did.")
    files: list[FileChange]


class ChangeList(BaseModel):
    """What changed between versions of the artifact."""

    changes: list[ChangeDocument]


class ArtifactDocument(BaseModel):
    """One version of the artifact."""

    run: str
    version: int
    passed: bool = Field(description="Whether it passed review.")
    approved_by: str | None = Field(description="Who approved it at a sign-off.")
    files: dict[str, str] = Field(description="The texts by path; a single text has no name.")


class EventDocument(BaseModel):
    """One event of a run."""

    seq: int = Field(description="The commit that it is part of.")
    event: Json = Field(description="`e` is its kind; the other fields depend on it.")


class EventPage(BaseModel):
    """Some events of a run's journal, oldest first."""

    events: list[EventDocument]
    next: int | None = Field(description="The `after` of the following page; null at the end.")


class SpendLine(BaseModel):
    """What one agent and model cost the runs of one workflow."""

    workflow: str
    agent: str
    model: str | None
    runs: int
    calls: int
    tokens_in: int | None = Field(description="Null if some call did not report it.")
    tokens_cached: int | None
    tokens_out: int | None
    usd: float | None = Field(description="Null if some call did not report it; never 0 for that.")
    known_usd: float = Field(description="The sum of what was reported.")
    known_tokens: int


class SpendDocument(BaseModel):
    """What runs have cost, by workflow, agent and model."""

    since: float = Field(description="Runs that have changed since; seconds since 1970.")
    lines: list[SpendLine]


class WorkflowInfo(BaseModel):
    """A workflow that can be started."""

    name: str = Field(description="What starts it, unless others have the same name.")
    target: str = Field(description="What starts it in any case.")
    description: str
    kind: str = Field(description="What it is, in words.", examples=["review flow", "skill"])
    own: bool = Field(description="Whether it belongs to the project, not to a package.")


class WorkflowDocument(WorkflowInfo):
    """A workflow and what it takes."""

    params: list[Json] = Field(description="Its parameters: name, type, default, description.")
    options: list[Json] = Field(description="The options of its notation, such as a goal.")
    graph: Json = Field(description="Its steps and where each outcome leads.")


class WorkflowList(BaseModel):
    """The workflows of the project and its packages."""

    workflows: list[WorkflowInfo]
    problems: list[str] = Field(description="What is wrong with definitions that were left out.")


class StartDocument(BaseModel):
    """What to start."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"target": "docs", "options": {"goal": "docs-goal.yaml"}}]},
    )

    target: str = Field(max_length=500, description=TARGET_HELP)
    name: str | None = Field(None, max_length=100, description="The run's name; else one is made.")
    params: Json = Field(default_factory=dict, description="Values by parameter.")
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


RunDocument.model_rebuild()


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
    schemas["ProblemDocument"] = ProblemDocument.model_json_schema()
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}]
    for path in document["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = _PROBLEM
    app.openapi_schema = document
    return document
