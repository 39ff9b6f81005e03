"""Why a run stopped, as values.

Each kind holds what a program needs to act on it. `str(reason)` is its plain text, which
the journal keeps beside the value for people; nothing reads that text back. Journals of
earlier versions have only a text: that is `Unclassified`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_never, get_args

from signoff.core.error_info import ErrorInfo
from signoff.core.outcome import Status
from signoff.remedies import (
    RaiseIterations,
    RaiseLimit,
    Remedy,
    Resume,
    ResumeDue,
    Scope,
    ShowInbox,
    WatchRun,
)
from signoff.tagged_json import TaggedUnion


@dataclass(frozen=True, slots=True)
class AnswerPending:
    """A request is open."""

    def __str__(self) -> str:
        """Returns the text for people."""
        return "waiting for an answer"


@dataclass(frozen=True, slots=True)
class ApprovalStale:
    """A file was changed after its approval, so the request is open again."""

    path: str
    by: str
    item: int

    def __str__(self) -> str:
        """Returns the text for people."""
        return (
            f"{self.path} was changed or removed after {self.by} approved it (#{self.item}), "
            "so that approval is stale; put the file back and approve again, or reject."
        )


@dataclass(frozen=True, slots=True)
class Sleeping:
    """Its step waits for a time."""

    until: float

    def __str__(self) -> str:
        """Returns the text for people."""
        return "by its step"


@dataclass(frozen=True, slots=True)
class QuotaExhausted:
    """An agent is out of quota until a time."""

    error: ErrorInfo
    until: float

    def __str__(self) -> str:
        """Returns the text for people."""
        return f"out of quota: {self.error.message}"


@dataclass(frozen=True, slots=True)
class BudgetReached:
    """A limit on money, tokens, calls or time leaves no room."""

    scope: Scope
    limit: str
    """usd, tokens, calls or seconds."""
    amount: float
    step: str = ""
    agent: str = ""
    """Who would have been asked next, if anyone."""

    def __str__(self) -> str:
        """Returns the text for people."""
        return f"the {self.scope}'s limit of {format_limit(self.limit, self.amount)} is reached"


@dataclass(frozen=True, slots=True)
class IterationLimit:
    """There may be no further iteration."""

    rounds: int
    detail: str = ""
    """The step's own words, if it has any."""

    def __str__(self) -> str:
        """Returns the text for people."""
        plural = "" if self.rounds == 1 else "s"
        return self.detail or f"{self.rounds} iteration{plural} without approval"


@dataclass(frozen=True, slots=True)
class EdgeLimit:
    """A loop may not be taken again."""

    step: str
    edge: str
    bound: int
    detail: str = ""
    """The step's own words, if it has any."""

    def __str__(self) -> str:
        """Returns the text for people."""
        return (
            self.detail or f"step {self.step!r} may take {self.edge!r} at most {self.bound} times"
        )


@dataclass(frozen=True, slots=True)
class NotConverging:
    """Further rounds would not help, by this rule."""

    rule: str
    evidence: str

    def __str__(self) -> str:
        """Returns the text for people."""
        return f"{self.rule}: {self.evidence}"


@dataclass(frozen=True, slots=True)
class PreconditionFailed:
    """A step's preconditions are not met."""

    step: str
    problem: str

    def __str__(self) -> str:
        """Returns the text for people."""
        return self.problem


@dataclass(frozen=True, slots=True)
class StepError:
    """A step failed with an error that no edge handles."""

    step: str
    error: ErrorInfo

    def __str__(self) -> str:
        """Returns the text for people."""
        return self.error.message


@dataclass(frozen=True, slots=True)
class AnswersUnused:
    """A step waits again without having used the answers it got."""

    step: str
    items: tuple[int, ...]

    def __str__(self) -> str:
        """Returns the text for people."""
        listed = ", ".join(f"#{number}" for number in self.items)
        return (
            f"step {self.step!r} waits again and did not use what was answered ({listed}); "
            "fix what keeps it from using them, then resume"
        )


@dataclass(frozen=True, slots=True)
class Rejected:
    """A human ended it."""

    by: str = ""
    text: str = ""

    def __str__(self) -> str:
        """Returns the text for people."""
        return self.text or f"stopped by {self.by or 'a human'}"


@dataclass(frozen=True, slots=True)
class Cancelled:
    """It was cancelled."""

    text: str = ""

    def __str__(self) -> str:
        """Returns the text for people."""
        return self.text


@dataclass(frozen=True, slots=True)
class ProcessStopped:
    """The process that drove it was stopped."""

    text: str = ""

    def __str__(self) -> str:
        """Returns the text for people."""
        return self.text


@dataclass(frozen=True, slots=True)
class StepDecided:
    """The workflow ended here, for a reason of its step's own."""

    text: str

    def __str__(self) -> str:
        """Returns the text for people."""
        return self.text


@dataclass(frozen=True, slots=True)
class Unclassified:
    """Recorded by a version that kept only the text."""

    text: str

    def __str__(self) -> str:
        """Returns the text as it was recorded."""
        return self.text


StopReason = (
    AnswerPending
    | ApprovalStale
    | Sleeping
    | QuotaExhausted
    | BudgetReached
    | IterationLimit
    | EdgeLimit
    | NotConverging
    | PreconditionFailed
    | StepError
    | AnswersUnused
    | Rejected
    | Cancelled
    | ProcessStopped
    | StepDecided
    | Unclassified
)

_REASONS: TaggedUnion[StopReason] = TaggedUnion(*get_args(StopReason))


def reason_to_json(reason: StopReason) -> dict[str, Any]:
    """Returns a reason as the journal stores it."""
    data = _REASONS.to_json(reason)
    if isinstance(reason, StepError | QuotaExhausted):
        data["error"] = reason.error.to_json()
    return data


def reason_from_json(data: dict[str, Any] | None, text: str = "") -> StopReason | None:
    """Reads a reason back; with only a text it is `Unclassified`, with nothing None."""
    if data is None:
        return Unclassified(text) if text else None
    if "error" in data:
        data = {**data, "error": ErrorInfo.from_json(data["error"])}
    return _REASONS.from_json(data)


def error_of(status: Status, reason: StopReason | None) -> ErrorInfo | None:
    """Returns the error that stopped a run; None when it stopped for another reason."""
    if isinstance(reason, StepError | QuotaExhausted):
        return reason.error
    if status is Status.FAILED:
        return ErrorInfo(type(reason).__name__ if reason else "Unclassified", str(reason or ""))
    return None


def remedies(  # noqa: C901  # one case for each status
    run: str, status: Status, reason: StopReason | None, due_at: float | None = None
) -> tuple[Remedy, ...]:
    """Returns what brings a run on from where it is; nothing for one that has ended for good."""
    match status:
        case Status.RUNNING:
            return (WatchRun(run),)
        case Status.WAITING:
            return (ShowInbox(run=run),)
        case Status.PARKED:
            return (ResumeDue(due_at),)
        case Status.BUDGET if isinstance(reason, BudgetReached):
            return (RaiseLimit(reason.limit, reason.scope, run),)
        case Status.BUDGET:
            return (RaiseLimit("NAME", run=run),)
        case Status.LIMIT:
            return (RaiseIterations(run),)
        case Status.FAILED:
            found = error_of(status, reason)
            return (*(found.remedies if found else ()), Resume(run), Resume(run, adopt=True))
        case Status.INTERRUPTED:
            return (Resume(run),)
        case Status.COMPLETED | Status.NOT_CONVERGING | Status.REJECTED | Status.CANCELLED:
            return ()
        case _:
            assert_never(status)


def format_limit(limit: str, amount: float) -> str:
    """Returns `$5`, `1 call`, `2.5 seconds`."""
    number = f"{amount:g}" if isinstance(amount, float) else str(amount)
    if limit == "usd":
        return f"${number}"
    return f"{number} {limit.removesuffix('s') if amount == 1 else limit}"
