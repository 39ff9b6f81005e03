"""Lets external workers do the work of a run: returns open work and takes submissions.

Every agent call waits in the inbox as a work item, and a submission goes through the same
checks as an agent's reply. Requests to humans are shown, but only humans answer them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from signoff.app.people import answering
from signoff.app.runs.history import events_of, form_of, load_state, resume_report
from signoff.app.runs.runs import Warn, current_row
from signoff.app.runs.start import FROM_OUTSIDE, resume, start
from signoff.app.runs.targets import Target
from signoff.app.settings.project import Project
from signoff.core import events as ev
from signoff.core.errors import InvalidAnswer, RunBusy, StaleApproval, UnknownName, UsageError
from signoff.core.outcome import Status
from signoff.core.remedies import PassOption, Resume, TakeWork
from signoff.core.requests import ItemState, request_word
from signoff.notation import ResumeReport
from signoff.runtime.handlers import RESULT
from signoff.runtime.ports import Observer
from signoff.runtime.run_inbox import BY_HUMAN
from signoff.runtime.store_port import InboxItem, RunRow

PATIENCE_SECONDS = 60.0
"""How long to wait for another process that drives the run."""

LOOK_AGAIN_SECONDS = 0.05
LOOK_AGAIN_MAX_SECONDS = 1.0
"""Each look compiles and loads the run again, so a process that waits long looks less often."""

TEXT_PLACEHOLDER, JSON_PLACEHOLDER, REASON_PLACEHOLDER = "<result>", "<JSON>", "<why>"
"""Stand for a result, and for the reason of a failure, in the commands that workers are shown."""

_LIKE_JSON = re.compile(r'\s*(?:\{|\[\s*[\[{"\]])')
"""How JSON begins, unlike prose that happens to begin with a bracket, such as `[1] See ...`."""

_RESUMABLE = frozenset(
    {Status.QUEUED, Status.INTERRUPTED, Status.FAILED, Status.PARKED, Status.RUNNING}
)
"""The statuses from which a run can be resumed without an answer."""


@dataclass(frozen=True)
class WorkItem:
    """One open work item."""

    number: int
    """The number of the request; work is submitted under it, once."""
    run: str
    step: str
    prompt: str
    digest: str
    schema: Mapping[str, Any] | None = None
    """JSON Schema of the result."""
    item: Any = None
    """The item to process, if the step processes several."""
    attempt: int = 1
    feedback: str | None = None
    """What was wrong with the last attempt."""
    must_hold: Sequence[str] = ()
    """The conditions that are checked afterwards."""
    takes: Sequence[str] = ()
    """What can be submitted in addition to the result, as words of the notation's options."""
    role: str = ""
    """The role of the sub-agent that has to do it; empty if the worker itself does."""
    form: Mapping[str, str] | None = None
    """The result with placeholders, if the prompt describes it; it says more than the schema."""
    context: int = 0
    """How many characters of the prompt, at its beginning, repeat what the run has found so far."""

    def is_named(self, name: str) -> bool:
        """Whether this is its number, or its item: as a text, or as JSON."""
        if name == str(self.number):
            return True
        return self.item is not None and self.item in (name, _as_json(name))


@dataclass(frozen=True)
class SubmitResult:
    """The verdict on a submission that was checked."""

    number: int
    accepted: bool
    problem: str = ""
    """Why it was not accepted."""


@dataclass(frozen=True)
class RunStatus:
    """The status of a run as an external worker needs it."""

    row: RunRow
    work: tuple[WorkItem, ...] = ()
    people: tuple[Mapping[str, Any], ...] = ()
    """Requests that humans have to answer before the run continues."""
    root: str = ""
    """The folder of the project, which a worker may be outside of."""
    verdict: SubmitResult | None = None
    progress: ResumeReport | None = None
    """Where the run continues, if its notation can say."""
    token: str = ""
    """What keeps its workers from decisions; only known when the run was just started."""


async def start_pulled(
    project: Project, target: Target, params: Mapping[str, Any], **options: Any
) -> RunStatus:
    """Starts a run whose agents are all external, up to its first work item.

    The options are those of `start`.
    """
    result = await start(project, target, params, switch=FROM_OUTSIDE, **options)
    token = answering.token_of(project, project.store.row(result.run))
    return replace(run_status(project, result.run), token=token)


async def next_work(
    project: Project,
    name: str | None = None,
    *,
    observers: Sequence[Observer] = (),
    warn: Warn = lambda _warning: None,
) -> RunStatus:
    """Returns the open work; a stopped run is resumed until there is some."""
    row = current_row(project, project.run(name))
    answering.check_token(project, row)
    # A run that rests is resumed if it can use an answer, or has no work that could be taken.
    answered = project.store.items(row.name, state=(ItemState.ANSWERED,))
    stuck = row.status in _RESUMABLE and not any(map(_is_work, project.store.items(row.name)))
    if answered or stuck:
        _check_pulled(project, row)
        await _resume(project, row.name, observers, warn)
    return run_status(project, row.name)


async def submit(
    project: Project,
    name: str | None,
    which: str | None,
    answer: answering.AnswerInput,
    *,
    observers: Sequence[Observer] = (),
    warn: Warn = lambda _warning: None,
) -> RunStatus:
    """Records a submission, lets the engine check it, and returns the run's new status.

    `which` is the number of the work item, or the item itself as `next` shows it. Raises
    `UsageError` for a submission that is malformed or comes too late: it changes nothing.
    """
    # A worker names the run itself, so its token is what keeps it to its own.
    row = project.run(name)
    answering.check_token(project, row)
    try:
        item = _find_item(project, row, which)
        _record(project, item, answer)
    except StaleApproval as error:
        raise InvalidAnswer(str(error), remedy=TakeWork(row.name)) from error
    await _resume(project, row.name, observers, warn, item.id)
    problem = _problem_of(project, row, item)
    verdict = SubmitResult(item.id, accepted=problem is None, problem=problem or "")
    return replace(run_status(project, row.name), verdict=verdict)


def run_status(project: Project, name: str) -> RunStatus:
    """Returns a run's status without changing it."""
    row = current_row(project, project.store.row(name))
    items = project.store.items(name)
    return RunStatus(
        row=row,
        work=tuple(_work_item(project, item) for item in items if _is_work(item)),
        people=tuple(
            answering.request_to_json(project, item) for item in items if not _is_work(item)
        ),
        root=str(project.home.root.absolute()),
        progress=resume_report(project, row),
    )


def _is_work(item: InboxItem) -> bool:
    """Tells whether a request replaces an agent call; all others are for humans."""
    return item.effect.endswith(BY_HUMAN)


def _work_item(project: Project, item: InboxItem) -> WorkItem:
    form = form_of(project, item)
    details = {name: value for name, value in form.get("about", {}).items() if name in _DETAILS}
    step = details.pop("step", item.step)
    return WorkItem(
        item.id, item.run, step, item.prompt, item.digest, form.get("schema"), **details
    )


_DETAILS = frozenset(
    {"step", "item", "attempt", "feedback", "must_hold", "takes", "role", "form", "context"}
)


def _find_item(project: Project, row: RunRow, which: str | None) -> InboxItem:
    """Returns the work item of this number, the one of this item, or the only open one."""
    if which is not None and which.isdecimal() and (found := _numbered(project, row, int(which))):
        return found
    items = project.store.items(row.name)
    work = [item for item in items if _is_work(item)]
    if which is not None:
        work = [item for item in work if _work_item(project, item).is_named(which)]
        if not work:
            what = f"run {row.name!r} has no open work for {which!r}"
            raise InvalidAnswer(what, remedy=TakeWork(row.name))
    match work:
        case [item]:
            return item
        case []:
            for_people = ", ".join(f"#{item.id}" for item in items)
            tail = f"; it is waiting for a human ({for_people})" if items else ""
            raise InvalidAnswer(f"run {row.name!r} has no open work{tail}")
        case several:
            listed = ", ".join(f"#{item.id}" for item in several[:8])
            raise UsageError(
                f"{len(several)} work items are open: {listed}; name one",
                remedy=PassOption("item", "NUMBER"),
            )


def _numbered(project: Project, row: RunRow, number: int) -> InboxItem | None:
    """Returns the work of the run with this number; a request to humans is refused.

    None means that no request of the run has the number, so it may be an item that is a number. One
    that is closed is meant by its number: late work must not be taken for that of such an item.
    """
    try:
        item = project.store.item(number)
    except UnknownName:
        return None
    if item.run != row.name:
        return None
    if not _is_work(item):
        word = request_word(form_of(project, item))
        raise InvalidAnswer(f"only a human can answer request #{number} ({word})")
    return item


def _record(project: Project, item: InboxItem, answer: answering.AnswerInput) -> None:
    form = form_of(project, item)
    about = form.get("about", {})
    answer = _with_values(answer, about.get("form") or {}, form.get("schema"))
    if not answer.failed:
        _refuse_malformed(str(answer.value), form.get("schema"))
    _refuse_placeholders(answer, about.get("form") or {})
    takes = about.get("takes", ())
    notation = project.notation_of(project.store.row(item.run))
    words = {each.name: each.word for each in notation.options} if notation is not None else {}
    for name in answer.extras:
        if words.get(name, name) not in takes:
            raise InvalidAnswer(f"this work does not accept {name}; leave it out")
    answering.record_answer(project, item.id, answer, work=True)


def _with_values(
    answer: answering.AnswerInput, form: Mapping[str, str], schema: Any
) -> answering.AnswerInput:
    """Returns a submission whose result is one JSON object with the values that came apart."""
    if not answer.values:
        return answer
    if not form and schema is None:
        raise UsageError("the result of this work is a text; it takes no other values")
    text = str(answer.value)
    fields = _json_object(text)
    if text.strip() and not fields:
        fields = {RESULT: text}
    fields |= answer.values
    for name in fields if form else ():
        if name not in form:
            raise UnknownName("value", name, form)
    return replace(answer, value=json.dumps(fields, ensure_ascii=False))


def _refuse_placeholders(answer: answering.AnswerInput, form: Mapping[str, str]) -> None:
    """Refuses a command that was run as it was printed: it must not use up an attempt."""
    text = str(answer.value).strip()
    # A reason is free text, so only the printed placeholder itself is refused.
    if answer.failed:
        unfilled = [text] if text == REASON_PLACEHOLDER else []
    elif text in (TEXT_PLACEHOLDER, JSON_PLACEHOLDER):
        unfilled = [text]
    else:
        fields = _json_object(text) if form else {}
        unfilled = [value for name, value in form.items() if fields.get(name) == value]
    if unfilled:
        raise InvalidAnswer(f"fill in what the command has placeholders for: {', '.join(unfilled)}")


def _refuse_malformed(text: str, schema: Any) -> None:
    """Refuses a result that is meant as JSON and is not: a slip of the command, not of the work."""
    from signoff.documents.lenient_json import load, load_strict, strip_code_fence

    if text.strip() in (TEXT_PLACEHOLDER, JSON_PLACEHOLDER):
        return
    if not text.strip():
        raise UsageError("the result is empty; if there is none, submit null")
    try:
        if schema is not None:
            load(strip_code_fence(text))
        elif _LIKE_JSON.match(text):
            load_strict(text)
    except ValueError as error:
        remedy = "" if schema is not None else "; to submit a plain text, write it as a JSON string"
        raise UsageError(f"the result is not valid JSON: {error}{remedy}") from error


def _json_object(text: str) -> dict[str, Any]:
    """Returns the fields of a JSON object; none if the text is anything else."""
    value = _as_json(text)
    return value if isinstance(value, dict) else {}


def _as_json(text: str) -> Any:
    """Returns the value of a text that is JSON; None for any other."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _check_pulled(project: Project, row: RunRow) -> None:
    """Raises if resuming the run would call its own agents instead of external workers."""
    # Otherwise a worker that asks for work would start, and bill, the agents of someone else's run.
    if ev.ANY_AGENT not in load_state(project, row).stand_ins:
        raise UsageError(
            f"the work of run {row.name!r} is not handed out to external workers",
            remedy=(Resume(row.name), Resume(row.name, external=True)),
        )


async def _resume(
    project: Project,
    name: str,
    observers: Sequence[Observer],
    warn: Warn,
    number: int | None = None,
) -> None:
    """Resumes a run; if another worker's process drives it, waits until that used our answer."""
    # The other process may use this very submission: it reads answers that arrive while it drives
    # the run.
    until = project.clock.monotonic() + PATIENCE_SECONDS
    pause = LOOK_AGAIN_SECONDS
    while number is None or _unread(project, name, number):
        try:
            await resume(project, name, observers=observers, warn=warn)
        except RunBusy:
            if project.clock.monotonic() > until:
                recorded = f"work #{number} is recorded, but " if number is not None else ""
                what = f"{recorded}another process is driving run {name!r}"
                raise RunBusy(what, remedy=TakeWork(name)) from None
        else:
            return
        await project.clock.sleep(pause)
        pause = min(2 * pause, LOOK_AGAIN_MAX_SECONDS)


def _unread(project: Project, name: str, number: int) -> bool:
    """Tells whether a submission is not used yet, or its run is still running."""
    if project.store.item(number).state == ItemState.ANSWERED:
        return True
    return current_row(project, project.store.row(name)).status is Status.RUNNING


_RECORDED = "your submission is kept and is checked again when the run resumes"
"""Added if something other than the work is at fault, such as a locked database."""


def _problem_of(project: Project, row: RunRow, item: InboxItem) -> str | None:
    """Returns why the run did not accept a submission; None if it did.

    `row` is the run before the submission; what happened since is read from its journal, up to
    the end of the step.
    """
    events = (event for _, event in events_of(project, row, after=row.head, whole=True))
    # `any` stops at the event that used the answer; the iterator then holds what followed.
    if not any(isinstance(e, ev.EffectFinished) and e.item == item.id for e in events):
        reason = project.store.row(row.name).reason or "it has not been checked yet"
        return f"{reason} ({_RECORDED})"
    for event in (event for event in events if _concerns(event, item)):
        match event:
            case ev.ItemFailed(problem=problem, fresh=fresh):
                return problem if fresh else f"{problem} ({_RECORDED})"
            case ev.AttemptFailed(problem=problem) | ev.Escalated(problem=problem, way=""):
                return problem
            case ev.RunStopped(status=Status.FAILED, reason=reason):
                return f"{reason} ({_RECORDED})"
            case ev.ItemFinished() | ev.StepWorked() | ev.StepFinished():
                return None
    return None


def _concerns(event: ev.Event, item: InboxItem) -> bool:
    """Tells whether an event is not about another item of the same fan-out."""
    if isinstance(event, ev.ItemFailed | ev.ItemFinished):
        return item.effect.startswith(event.scope)
    return True
