"""Lets an agent outside drive a run: what is to be done next, and what came of what it did.

Every agent's call waits in the inbox as work; whatever is handed in goes through the same
checks as an agent's reply. Requests to people are shown, and answered by people only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from signoff.app.answering import Given, form_of, record_answer
from signoff.app.history import events_of, folded
from signoff.app.project import Project
from signoff.app.resume import FROM_OUTSIDE, resume
from signoff.app.run_files import Warn
from signoff.app.runs import as_it_stands
from signoff.app.start import start
from signoff.app.targets import Target
from signoff.core import events as ev
from signoff.core.outcome import Status
from signoff.core.requests import ItemState
from signoff.core.spend import Limits
from signoff.errors import InvalidAnswer, RunBusy, StaleApproval, UsageError
from signoff.remedies import PassOption, Resume, TakeWork
from signoff.runtime.ports import Observer
from signoff.runtime.run_inbox import BY_HUMAN
from signoff.runtime.store_port import InboxItem, RunRow

PATIENCE_SECONDS = 60.0
"""How long to wait for another process that drives the run."""

LOOK_AGAIN_SECONDS = 0.05

_GO_ON = frozenset({Status.INTERRUPTED, Status.FAILED, Status.PARKED, Status.RUNNING})
"""Where a run rests that may go on without anybody's answer."""


@dataclass(frozen=True)
class WorkItem:
    """One piece of work that is open."""

    number: int
    """Of the request; work is handed in under it, once."""
    run: str
    step: str
    prompt: str
    digest: str
    schema: Mapping[str, Any] | None = None
    """JSON Schema of the result."""
    item: Any = None
    """The item to work, where the step works several."""
    attempt: int = 1
    feedback: str | None = None
    """What was wrong with the last attempt."""
    must_hold: Sequence[str] = ()
    """What is checked afterwards, in words."""
    takes: Sequence[str] = ()
    """What can be handed in beside the result, by the words of the notation's options."""


@dataclass(frozen=True)
class Submission:
    """What a worker hands in."""

    text: str
    """The result; of a failure, the reason."""
    failed: bool = False
    beside: Mapping[str, Any] = field(default_factory=dict)
    """What the run's notation takes besides the result, by the names of its options."""
    digest: str | None = None
    by: str = ""


@dataclass(frozen=True)
class SubmitResult:
    """What came of work that was handed in."""

    accepted: bool
    problem: str = ""
    number: int | None = None


@dataclass(frozen=True)
class RunStatus:
    """Where a run stands, for whoever works it."""

    row: RunRow
    work: tuple[WorkItem, ...] = ()
    people: tuple[InboxItem, ...] = ()
    """What people have to answer before the run goes on."""
    verdict: SubmitResult | None = field(default=None)


async def start_pulled(
    project: Project,
    target: Target,
    params: Mapping[str, Any],
    *,
    name: str | None = None,
    limits: Limits | None = None,
    observers: Sequence[Observer] = (),
) -> RunStatus:
    """Starts a run whose agents are all played from outside, up to the first piece of work."""
    result = await start(
        project, target, params,
        name=name, limits=limits, switch=FROM_OUTSIDE, observers=observers,
    )  # fmt: skip
    return standing(project, result.run)


async def next_work(
    project: Project,
    name: str | None = None,
    *,
    observers: Sequence[Observer] = (),
    warn: Warn = lambda _warning: None,
) -> RunStatus:
    """Returns the work that is open; a run at rest is driven on until there is some."""
    row = as_it_stands(project, project.run(name))
    if _can_go_on(project, row):
        _check_pulled(project, row)
        await _go_on(project, row.name, observers, warn)
    return standing(project, row.name)


async def submit(
    project: Project,
    name: str | None,
    number: int | None,
    given: Submission,
    *,
    observers: Sequence[Observer] = (),
    warn: Warn = lambda _warning: None,
) -> RunStatus:
    """Records what a worker did, lets the engine check it, and says where the run stands then."""
    row = project.run(name)
    try:
        item = _meant(project, row, number)
        _record(project, item, given)
    except (InvalidAnswer, StaleApproval) as error:
        refused = SubmitResult(accepted=False, problem=str(error), number=number)
        return replace(standing(project, row.name), verdict=refused)
    await _go_on(project, row.name, observers, warn, item.id)
    verdict = _verdict(project, row, item)
    return replace(standing(project, row.name), verdict=verdict)


def standing(project: Project, name: str) -> RunStatus:
    """Returns where a run stands, without touching it."""
    row = as_it_stands(project, project.store.row(name))
    items = project.store.items(name)
    return RunStatus(
        row=row,
        work=tuple(_piece(project, item) for item in items if _is_work(item)),
        people=tuple(item for item in items if not _is_work(item)),
    )


def _is_work(item: InboxItem) -> bool:
    """Tells whether a request stands in an agent's place; all others are for people."""
    return item.effect.endswith(BY_HUMAN)


def _piece(project: Project, item: InboxItem) -> WorkItem:
    form = form_of(project, item)
    known = {name: value for name, value in form.get("about", {}).items() if name in _TOLD}
    step = known.pop("step", item.step)
    return WorkItem(item.id, item.run, step, item.prompt, item.digest, form.get("schema"), **known)


_TOLD = frozenset({"step", "item", "attempt", "feedback", "must_hold", "takes"})


def _meant(project: Project, row: RunRow, number: int | None) -> InboxItem:
    """Returns the request a worker means: by number, or the only one that is open."""
    if number is not None:
        item = project.store.item(number)
        if item.run != row.name:
            raise InvalidAnswer(f"request #{number} belongs to run {item.run!r}, not {row.name!r}")
        if not _is_work(item):
            raise InvalidAnswer(f"request #{number} is a {item.kind}; only a human can answer it")
        return item
    items = project.store.items(row.name)
    match [item for item in items if _is_work(item)]:
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


def _record(project: Project, item: InboxItem, given: Submission) -> None:
    takes = form_of(project, item).get("about", {}).get("takes", ())
    notation = project.notation_of(project.store.row(item.run))
    words = {each.name: each.word for each in notation.options} if notation is not None else {}
    for name in given.beside:
        if words.get(name, name) not in takes:
            raise InvalidAnswer(f"this work does not accept {name}; leave it out")
    answer = Given(
        given.text,
        by=given.by,
        digest=given.digest,
        failed=given.failed,
        beside={} if given.failed else given.beside,
    )
    record_answer(project, item.id, answer)


def _can_go_on(project: Project, row: RunRow) -> bool:
    if project.store.items(row.name, state=(ItemState.ANSWERED,)):
        return True
    return row.status in _GO_ON and not any(map(_is_work, project.store.items(row.name)))


def _check_pulled(project: Project, row: RunRow) -> None:
    """Raises where going on would set agents to work that nobody asked for here."""
    if ev.ANY_AGENT not in folded(project, row).stand_ins:
        raise UsageError(
            f"the work of run {row.name!r} is not handed out to external workers",
            remedy=(Resume(row.name), Resume(row.name, external=True)),
        )


async def _go_on(
    project: Project,
    name: str,
    observers: Sequence[Observer],
    warn: Warn,
    number: int | None = None,
) -> None:
    """Drives a run on; while another worker's process does, that one takes our answer too."""
    until = project.clock.monotonic() + PATIENCE_SECONDS
    while number is None or _unread(project, name, number):
        try:
            await resume(project, name, observers=observers, warn=warn)
        except RunBusy:
            if project.clock.monotonic() > until:
                raise _still_busy(name, number) from None
        else:
            return
        await project.clock.sleep(LOOK_AGAIN_SECONDS)


def _unread(project: Project, name: str, number: int) -> bool:
    """Tells whether what was handed in still waits, or its run has not come to rest since."""
    if project.store.item(number).state == ItemState.ANSWERED:
        return True
    return as_it_stands(project, project.store.row(name)).status is Status.RUNNING


def _still_busy(name: str, number: int | None) -> RunBusy:
    kept = f"work #{number} is recorded, but " if number is not None else ""
    return RunBusy(f"{kept}another process is driving run {name!r}", remedy=TakeWork(name))


_KEPT = "your submission is kept and is checked again when the run resumes"
"""Said where something else is at fault than the work, such as a database that is locked."""


def _verdict(project: Project, row: RunRow, item: InboxItem) -> SubmitResult:
    """Reads in the journal what became of an answer; what it led to next is not its business."""
    events = (event for _, event in events_of(project, row, after=row.head, whole=True))
    # Reads as far as the use of the answer; what is left of the events came of it.
    if not any(isinstance(e, ev.EffectFinished) and e.item == item.id for e in events):
        why = project.store.row(row.name).reason or "it has not been checked yet"
        return SubmitResult(accepted=False, problem=f"{why} ({_KEPT})", number=item.id)
    for event in events:
        match event:
            case ev.ItemFailed(scope=scope, problem=said, fresh=fresh) if item.effect.startswith(
                scope
            ):
                problem = said if fresh else f"{said} ({_KEPT})"
                return SubmitResult(accepted=False, problem=problem, number=item.id)
            case ev.AttemptFailed(problem=said) | ev.Escalated(problem=said, way=""):
                return SubmitResult(accepted=False, problem=said, number=item.id)
            case ev.RunStopped(status=Status.FAILED, reason=said):
                return SubmitResult(accepted=False, problem=f"{said} ({_KEPT})", number=item.id)
            case ev.ItemFinished(scope=scope) if item.effect.startswith(scope):
                break
            case ev.StepWorked() | ev.StepFinished():
                break
    return SubmitResult(accepted=True, number=item.id)
