"""Why a run stopped, as values.

Each kind holds what a program needs to act on it. The journal stores its plain text too, for
humans; no code reads that text back.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self, assert_never

from signoff.core import remedies as fix
from signoff.core.errors import AgentTransient
from signoff.core.outcome import Status
from signoff.core.remedies import TaggedValue

# An error as data: what it was, who it concerns and what fixes it.


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """What a run stores about an error, and what surfaces show of it."""

    kind: str
    """The error's class, such as `AgentAuth` or `ValueError`."""
    message: str
    agent: str = ""
    """The agent that was asked, when it was a call."""
    model: str = ""
    """The model that was named for it."""
    location: str = ""
    """`file.py:12`, the line of the author's code that raised; empty if there is none."""
    remedies: tuple[fix.Remedy, ...] = ()
    """What fixes it, most likely first."""

    def to_json(self) -> dict[str, Any]:
        """Returns the error as plain values, all of them, for programs to read."""
        values = {each.name: getattr(self, each.name) or None for each in fields(self)}
        return {**values, "remedies": [remedy.to_json() for remedy in self.remedies]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ErrorInfo:
        """Reads what `to_json` wrote."""
        texts: dict[str, Any] = {name: value or "" for name, value in data.items()}
        remedies = tuple(fix.Remedy.from_json(each) for each in data.get("remedies", ()))
        return cls(**{**texts, "remedies": remedies})


class StopReason(TaggedValue):
    """Why a run stopped; `str(reason)` is the text for humans."""

    def to_json(self) -> dict[str, Any]:
        """Returns the reason as the journal stores it."""
        data = super().to_json()
        return {**data, "error": data["error"].to_json()} if "error" in data else data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Reads a reason back; raises `ValueError` for an unknown kind."""
        if "error" in data:
            data = {**data, "error": ErrorInfo.from_json(data["error"])}
        return super().from_json(data)


@dataclass(frozen=True)
class AnswerPending(StopReason):
    """A request is open."""

    def __str__(self) -> str:
        return "waiting for an answer"


@dataclass(frozen=True)
class ApprovalStale(StopReason):
    """A file was changed after its approval, so the request is open again."""

    path: str
    by: str
    item: int

    def __str__(self) -> str:
        return (
            f"{self.path} was changed or removed after {self.by} approved it (#{self.item}), "
            "so that approval is stale; put the file back and approve again, or reject."
        )


@dataclass(frozen=True)
class Sleeping(StopReason):
    """Its step waits for a time."""

    until: float

    def __str__(self) -> str:
        return "by its step"


@dataclass(frozen=True)
class QuotaExhausted(StopReason):
    """An agent is out of quota until a time."""

    error: ErrorInfo
    until: float

    def __str__(self) -> str:
        return f"out of quota: {self.error.message}"


@dataclass(frozen=True)
class BudgetReached(StopReason):
    """A limit on money, tokens, calls or time leaves no room."""

    scope: fix.Scope
    limit: str
    """usd, tokens, calls or seconds."""
    amount: float
    step: str = ""
    agent: str = ""
    """Who would have been asked next, if anyone."""

    def __str__(self) -> str:
        return f"the {self.scope}'s limit of {format_limit(self.limit, self.amount)} is reached"


@dataclass(frozen=True)
class RoundLimit(StopReason):
    """There may be no further round."""

    rounds: int
    detail: str = ""
    """The step's own words, if it has any."""

    def __str__(self) -> str:
        plural = "" if self.rounds == 1 else "s"
        return self.detail or f"{self.rounds} round{plural} without passing"


@dataclass(frozen=True)
class EdgeLimit(StopReason):
    """A loop may not be taken again."""

    step: str
    edge: str
    bound: int
    detail: str = ""
    """The step's own words, if it has any."""

    def __str__(self) -> str:
        return (
            self.detail or f"step {self.step!r} may take {self.edge!r} at most {self.bound} times"
        )


@dataclass(frozen=True)
class NotConverging(StopReason):
    """Further rounds would not help, by this rule."""

    rule: str
    evidence: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.evidence}"


@dataclass(frozen=True)
class PreconditionFailed(StopReason):
    """A step's preconditions are not met."""

    step: str
    problem: str

    def __str__(self) -> str:
        return self.problem


@dataclass(frozen=True)
class StepError(StopReason):
    """A step failed with an error that no edge handles."""

    step: str
    error: ErrorInfo

    def __str__(self) -> str:
        return self.error.message


@dataclass(frozen=True)
class AnswersUnused(StopReason):
    """A step waits again without having used the answers it got."""

    step: str
    items: tuple[int, ...]

    def __str__(self) -> str:
        listed = ", ".join(f"#{number}" for number in self.items)
        return (
            f"step {self.step!r} waits again and did not use what was answered ({listed}); "
            "fix what keeps it from using them, then resume"
        )


@dataclass(frozen=True)
class Rejected(StopReason):
    """A human ended it."""

    by: str = ""
    text: str = ""

    def __str__(self) -> str:
        return self.text or f"stopped by {self.by or 'a human'}"


@dataclass(frozen=True)
class _OwnWords(StopReason):
    """A reason that is nothing but a text."""

    text: str = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Cancelled(_OwnWords):
    """It was cancelled."""


@dataclass(frozen=True)
class ProcessStopped(_OwnWords):
    """The process that drove it was stopped."""


@dataclass(frozen=True)
class StepDecided(_OwnWords):
    """The workflow ended here, for a reason of its step's own."""


def reason_from_json(data: dict[str, Any] | None) -> StopReason | None:
    """Reads a reason back."""
    return StopReason.from_json(data) if data is not None else None


def error_of(status: Status, reason: StopReason | None) -> ErrorInfo | None:
    """Returns the error that stopped a run; None when it stopped for another reason."""
    if isinstance(reason, StepError | QuotaExhausted):
        return reason.error
    if status is Status.FAILED:
        return ErrorInfo(type(reason).__name__, str(reason))
    return None


def remedies(  # noqa: C901  # one case for each status
    run: str, status: Status, reason: StopReason | None, due_at: float | None = None
) -> tuple[fix.Remedy, ...]:
    """Returns what brings a run on from where it is; nothing for one that has ended for good."""
    match status:
        case Status.RUNNING | Status.QUEUED:
            return (fix.WatchRun(run),)
        case Status.WAITING:
            return (fix.ShowInbox(run=run),)
        case Status.PARKED:
            return (fix.ResumeDue(due_at),)
        case Status.BUDGET if isinstance(reason, BudgetReached):
            return (fix.RaiseLimit(reason.limit, reason.scope, run),)
        case Status.BUDGET:
            return (fix.RaiseLimit("NAME", run=run),)
        case Status.LIMIT if isinstance(reason, StepDecided):
            # The workflow counts by itself, so no setting of the engine allows more.
            return (fix.StartRun(again=True, run=run),)
        case Status.LIMIT:
            return (fix.RaiseRounds(run),)
        case Status.FAILED:
            found = error_of(status, reason)
            own = found.remedies if found else ()
            if found is not None and found.kind == AgentTransient.__name__:
                own = (*own, fix.AddFallback(found.agent))
            return (*own, fix.Resume(run), fix.Resume(run, adopt=True))
        case Status.INTERRUPTED:
            return (fix.Resume(run),)
        case Status.NOT_CONVERGING | Status.REJECTED | Status.CANCELLED:
            return (fix.StartRun(again=True, run=run),)
        case Status.COMPLETED | Status.FINDINGS | Status.INCOMPLETE:
            return ()
        case _:
            assert_never(status)


def format_limit(limit: str, amount: float) -> str:
    """Returns `$5`, `1 call`, `2.5 seconds`."""
    number = f"{amount:g}" if isinstance(amount, float) else str(amount)
    if limit == "usd":
        return f"${number}"
    return f"{number} {limit.removesuffix('s') if amount == 1 else limit}"


def describe_stop(status: str, reason: StopReason | None) -> tuple[str, str]:
    """Returns how a run stopped and why; `status` is the text for its status."""
    match reason:
        case None | AnswerPending():
            return status, ""
        case NotConverging(rule=rule, evidence=evidence):
            return f"{status} ({rule})", evidence
        case _:
            return status, str(reason)
