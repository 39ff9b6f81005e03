"""What a run, a request, a finding, a workflow or a worker looks like as data: one type for each.

Every surface renders these: `--json`, the REST interface, MCP and the pages. They are ordinary
dictionaries, and OpenAPI has the words below as descriptions. Some have more fields than are listed
here: what a run's notation reports, and what is of use only at this machine.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

# The one of `typing` is no type of a response before Python 3.12.
from typing_extensions import TypedDict

from signoff.core.outcome import Status
from signoff.core.requests import ItemState, RequestKind
from signoff.core.severity import Severity
from signoff.core.spend import LedgerEntry
from signoff.core.words import Label
from signoff.runtime.store_port import LedgerTotal, RunRow, WorkerRow
from signoff.views.timeline import StepVisit

Json = dict[str, Any]


class SurfaceDocument(TypedDict):
    """What all of them have in common: their fields are described by the texts below them."""


# Read by pydantic, which no command line has to wait for.
_DESCRIBED = {"use_attribute_docstrings": True}
SurfaceDocument.__pydantic_config__ = _DESCRIBED  # type: ignore[attr-defined]


class RunInfo(SurfaceDocument):
    """A run as a list shows it."""

    run: str
    """Its name."""
    workflow: str
    status: Status
    step: str | None
    """The step it is at."""
    round: int
    """The round it is in, from 1."""
    reason: str
    """Why it is not running, in words."""
    target: str
    """How its workflow was named when it was started."""
    due_at: float | None
    """When it continues by itself; seconds since 1970."""
    created_at: float
    updated_at: float


class RunPage(SurfaceDocument):
    """Some runs, newest first."""

    runs: list[RunInfo]
    next: str | None
    """The `cursor` of the following page; null on the last."""


class RequestInfo(SurfaceDocument):
    """A pending request as a list shows it."""

    number: int
    run: str
    step: str
    kind: RequestKind
    title: str
    """Its title, or else the first line of its prompt."""
    prompt: str
    """Its beginning; the request itself has all of it."""
    question_id: str | None
    """The workflow's own name of the question."""
    opened_at: float
    deadline: float | None


class RequestDocument(SurfaceDocument):
    """A request to a human: what is shown, and what can be answered."""

    number: int
    run: str
    step: str
    kind: RequestKind
    title: str
    prompt: str
    options: list[Json]
    """What can be chosen: `label`, `description`, `requires_input` if it needs a text."""
    questions: list[Json]
    """What is asked, for several questions."""
    shown: Json
    """What the answer is bound to."""
    path: str | None
    """The file of the run that an approval is about."""
    edits: str | None
    """`accept` if that file may be edited first."""
    schema: Json | None
    """The JSON schema of a response, if it has one."""
    question_id: str | None
    """The workflow's own name of the question."""
    presence: bool
    """Whether an approval needs a passkey, on the page."""
    default: Any
    """The answer that counts at the deadline."""
    at_deadline: str | None
    """What happens then, in words."""
    digest: str
    """Of what is shown; every answer has to carry it."""
    opened_at: float
    deadline: float | None
    state: ItemState
    answer: Json | None
    """The answer, its author and its time, once given."""


class LocalRequest(RequestDocument):
    """The same for someone at this machine."""

    prompt_file: str | None
    """The file with the full prompt of a request for a response."""
    file: str | None
    """The full path of the file that an approval is about."""
    commands: list[str]
    """The commands that answer it."""


class StepDocument(SurfaceDocument):
    """A step that a run has entered."""

    step: str
    times: int
    """How often it was entered by then."""
    round: int
    outcome: str | None
    """Null while it runs."""
    started_at: float
    seconds: float
    attempts: int
    effects: dict[str, int]
    """What it has done, by kind."""
    error: str | None


class LedgerLine(SurfaceDocument):
    """What one agent and model cost one step; null is what some call did not report."""

    step: str
    agent: str
    model: str | None
    calls: int
    tokens: int | None
    tokens_in: int | None
    tokens_cached: int | None
    tokens_out: int | None
    usd: float | None


class RunDocument(RunInfo):
    """Everything about a run, except its texts."""

    stop_reason: Json | None
    """Why it stopped, as data with a `kind`."""
    error: Json | None
    """The error that stopped it, with its `kind`."""
    remedies: list[Json]
    """How to continue it; each has a `kind`."""
    params: Json
    inbox: list[RequestDocument]
    """Its pending requests."""
    decisions: list[Json]
    """What humans decided, and who they are."""
    spend: Json
    """Calls, tokens and dollars; null where a call did not say."""
    limits: Json
    steps: list[StepDocument]
    """Every step that was entered, in order."""
    ledger: list[LedgerLine]
    """The spend by step, agent and model."""
    result: Json | None
    """The file that it leaves to its user, named from the run's folder."""
    definition: str
    """The digest of the workflow as it was started."""
    owner: str | None
    """The process that drives it, as the database knows it."""
    driver: Json | None
    """Its `host` and `pid`, while it lives."""
    progress: Json | None
    """How far its current step is; null if its notation does not say."""


# Notations add what they report about a run, such as findings.
RunDocument.__pydantic_config__ = {**_DESCRIBED, "extra": "allow"}  # type: ignore[attr-defined]


class FindingDocument(SurfaceDocument):
    """A finding of a review, and what became of it."""

    id: str
    constraint: str
    rule: str
    severity: Severity
    status: Label
    """What became of it."""
    finding: str
    """What is wrong, in the critic's words."""
    quote: str
    """The words of the artifact that it is about."""
    path: str
    """The file it is about."""
    line: int | None
    """Where it is in the latest version."""
    first: int
    """The first round that reported it."""
    last: int
    """The last round that reported it."""
    answered_in: int | None
    """The version whose change answered it."""
    flagged_by: list[str]
    """The critics that reported it."""
    history: list[tuple[int, Label]]
    """What became of it, round by round."""
    not_reported_again: bool
    """Whether it is still open although no critic reported it again."""
    awaiting_sign_off: bool
    """Whether a human asked for the fix and has yet to decide about it."""
    returns: int
    """How often it came back after it was fixed."""
    location: str
    """Where it is, in the critic's words."""
    column: int | None
    end_line: int | None
    end_column: int | None
    artifact: str
    """The digest of the text that it was last reported in."""
    unverified: bool
    """Whether its quote is nowhere in the artifact."""
    edit: Json | None
    """The exact edit that its critic suggests."""
    suggested_fix: str
    """What its critic suggests, in words."""
    edited: bool
    """Whether its passage was edited since."""
    dismissed_by: str | None
    """Who dismissed it."""
    reason: str
    """Why it was dismissed."""
    decision: str
    """What a human decided about it."""


class HunkDocument(SurfaceDocument):
    """Some changed lines."""

    diff: str
    findings: list[str]
    """The ids of the findings that it answers."""
    added: int
    removed: int


class FileChange(SurfaceDocument):
    """What changed in one file."""

    path: str
    hunks: list[HunkDocument]


# Not a class: `from` cannot be a name there.
_Span = TypedDict("_Span", {"from": int, "to": int})


class ChangeDocument(_Span, SurfaceDocument):
    """What changed from one version to another; `from` and `to` are their numbers."""

    round: int
    step: str
    kind: str
    agent: str | None
    """Who wrote it; null if exact edits did."""
    files: list[FileChange]


class FindingPage(SurfaceDocument):
    """The findings of a review, those that block first."""

    findings: list[FindingDocument]


class ChangeList(SurfaceDocument):
    """What changed between versions of the artifact."""

    changes: list[ChangeDocument]


class ArtifactDocument(SurfaceDocument):
    """One version of the artifact."""

    run: str
    version: int
    passed: bool
    """Whether it passed review."""
    approved_by: str | None
    """Who approved it at a sign-off."""
    files: dict[str, str]
    """The texts by path; a single text has no name."""


class EventDocument(SurfaceDocument):
    """One event of a run."""

    seq: int
    """The commit that it is part of."""
    event: Json
    """`e` is its kind; the other fields depend on it."""


class EventPage(SurfaceDocument):
    """Some events of a run's journal, oldest first."""

    events: list[EventDocument]
    next: int | None
    """The `after` of the following page; null at the end."""


class SpendLine(SurfaceDocument):
    """What one agent and model cost the runs of one workflow."""

    workflow: str
    agent: str
    model: str | None
    runs: int
    calls: int
    tokens: int | None
    tokens_in: int | None
    """Null if some call did not report it."""
    tokens_cached: int | None
    tokens_out: int | None
    usd: float | None
    """Null if some call did not report it; never 0 for that."""
    known_usd: float
    """The sum of what was reported."""
    known_tokens: int


class SpendDocument(SurfaceDocument):
    """What runs have cost, by workflow, agent and model."""

    since: float
    """Runs that have changed since; seconds since 1970."""
    lines: list[SpendLine]


class WorkflowInfo(SurfaceDocument):
    """A workflow that can be started."""

    name: str
    """What starts it, unless others have the same name."""
    target: str
    """What starts it in any case."""
    description: str
    kind: str
    """What it is, in words."""
    own: bool
    """Whether it belongs to the project, not to a package."""


class WorkflowDocument(WorkflowInfo):
    """A workflow and what it takes."""

    params: list[Json]
    """Its parameters: name, type, default, description."""
    options: list[Json]
    """The options of its notation, such as a goal."""
    graph: Json
    """Its steps and where each outcome leads."""


class WorkflowList(SurfaceDocument):
    """The workflows of the project and its packages."""

    workflows: list[WorkflowInfo]
    problems: list[str]
    """What is wrong with definitions that were left out."""


class WorkerDocument(SurfaceDocument):
    """A process that drives runs."""

    number: int
    host: str
    pid: int
    slots: int
    running: int
    capabilities: list[str]
    started_at: float


D = TypeVar("D")


def document(kind: type[D], source: Any, **others: Any) -> D:
    """Returns a document; its values are those given, and the ones `source` has under its names."""
    names = kind.__annotations__
    return cast(
        D, {each: others[each] if each in others else getattr(source, each) for each in names}
    )


def run_info(row: RunRow) -> RunInfo:
    """Returns a run as a list shows it."""
    return document(RunInfo, row, run=row.name, round=row.iteration)


def worker_document(worker: WorkerRow) -> WorkerDocument:
    """Returns a worker."""
    owner = worker.owner
    return document(WorkerDocument, worker, host=owner.host_name, pid=owner.pid)


def ledger_line(entry: LedgerEntry) -> LedgerLine:
    """Returns what an agent cost one step of a run."""
    return document(LedgerLine, entry, **_amounts(entry))


def spend_line(total: LedgerTotal) -> SpendLine:
    """Returns what an agent cost the runs of a workflow."""
    known = {"known_usd": total.usd, "known_tokens": total.tokens_in + total.tokens_out}
    return document(SpendLine, total, **_amounts(total), **known)


def _amounts(entry: LedgerEntry | LedgerTotal) -> Json:
    # What some calls did not report is unknown, and never shown as 0.
    return {
        "model": entry.model or None,
        "tokens": None if entry.unknown_tokens else entry.tokens_in + entry.tokens_out,
        "tokens_in": None if entry.unknown_tokens else entry.tokens_in,
        "tokens_cached": None if entry.unknown_cached else entry.tokens_cached,
        "tokens_out": None if entry.unknown_tokens else entry.tokens_out,
        "usd": None if entry.unknown_usd else entry.usd,
    }


def step_document(visit: StepVisit) -> StepDocument:
    """Returns a step that was entered."""
    return document(
        StepDocument,
        visit,
        times=visit.visit,
        round=visit.iteration,
        seconds=round(visit.seconds, 3),
        effects=dict(visit.effects),
        error=visit.error or None,
    )
