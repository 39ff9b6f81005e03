"""What happened to a run, as values. A run's journal is the list of these, in order.

Every event is plain data and encodes to one JSON object; fields at their default are
left out, so a new field with a default keeps old journals readable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar

from signoff.core.delta import Delta
from signoff.core.effects import EffectId, EffectKind
from signoff.core.errors import StoreDamaged, StoreTooNew
from signoff.core.outcome import Outcome, Status
from signoff.core.remedies import snake_case
from signoff.core.stop_reason import StopReason

ROUNDS = "max_iterations"
"""Used in place of an edge's key for the limit on rounds; edge keys contain a slash."""


def lifts_of(way: str) -> str:
    """Returns the counter of lifted limits: the edge's count when it was, or how often `ROUNDS`."""
    return way if way == ROUNDS else f"lifted {way}"


KINDS: dict[str, type[Event]] = {}
"""Every class of event, by tag."""


@dataclass(slots=True)
class Event:
    """Something that happened, and when (seconds since 1970, stamped by the journal)."""

    tag: ClassVar[str] = ""
    """The class name in snake case. Journals store it, so no class below may be renamed."""
    at: float = field(default=0.0, kw_only=True)

    def __init_subclass__(cls) -> None:
        cls.tag = snake_case(cls.__name__)
        # A dataclass with slots is created twice, and the second class is the one that is used.
        KINDS[cls.tag] = cls


@dataclass(slots=True)
class RunStarted(Event):
    """A run began."""

    workflow: str
    definition: str
    entry: str
    params: dict[str, Any]
    limits: dict[str, float] = field(default_factory=dict)
    seed: str = ""
    folder: str = ""
    """The folder it was started in; its programs run there, wherever it is resumed from."""


@dataclass(slots=True)
class RunResumed(Event):
    """A runner resumed the run; the errors that stopped it are forgotten, so it tries again."""

    ready_at: float | None = None
    """When a run that was handed over could have continued; None if no worker was waited for."""


@dataclass(slots=True)
class RunStopped(Event):
    """The run stopped: waiting, parked, or at one of its ends."""

    status: Status
    reason: str = ""
    """Why, as text for humans; no code reads it back."""
    due_at: float | None = None
    stop_reason: dict[str, Any] | None = None
    """Why, as data; None if it needs no reason."""

    @classmethod
    def because(
        cls, status: Status, reason: StopReason | None, due_at: float | None = None
    ) -> RunStopped:
        """Returns the event for a stop with this reason."""
        return cls(status, str(reason or ""), due_at, reason.to_json() if reason else None)


@dataclass(slots=True)
class LimitsChanged(Event):
    """The user changed the limits."""

    limits: dict[str, float]


ANY_AGENT = "*"
"""In place of an agent's name: every agent without a replacement of its own."""


@dataclass(slots=True)
class AgentSwitched(Event):
    """The user replaced an agent by another from here on."""

    agent: str
    to: str


@dataclass(slots=True)
class ParamsCorrected(Event):
    """Someone corrected parameters that no finished step had used."""

    params: dict[str, Any]


@dataclass(slots=True)
class DefinitionAdopted(Event):
    """The user let the run continue with a changed definition."""

    definition: str


@dataclass(slots=True)
class StepBegun(Event):
    """The preconditions of the current visit held; they are not checked again."""


@dataclass(slots=True)
class StepWorked(Event):
    """The handler is done and its postconditions held; only the gate remains."""

    outcome: Outcome
    delta: Delta = field(default_factory=dict)


@dataclass(slots=True)
class AttemptFailed(Event):
    """The current attempt fell short; the next one gets the problem as feedback."""

    problem: str
    late: bool = False
    """Whether it only ran out of time; its finished effects are not repeated then."""


@dataclass(slots=True)
class Escalated(Event):
    """Retries are used up or a limit is reached, and a human has to decide."""

    problem: str
    way: str = ""
    """The key of the edge whose bound was reached; empty if attempts ran out.

    Journals store the field under this name."""
    outcome: Outcome | None = None
    delta: Delta = field(default_factory=dict)


@dataclass(slots=True)
class AttemptOpened(Event):
    """A human sent the step back with feedback."""

    feedback: str


@dataclass(slots=True)
class AttemptReplaced(Event):
    """The attempt was started over, because its requests differ from the recorded ones."""


@dataclass(slots=True)
class LimitLifted(Event):
    """A human let a loop continue beyond its bound."""

    way: str
    """The edge whose count starts again at 0, or `ROUNDS` for as many rounds again."""


@dataclass(slots=True)
class StepFinished(Event):
    """A step was left; the next one, if any, is entered by the same event."""

    outcome: Outcome
    way: str
    """The key of the edge that was taken."""
    to: str | None = None
    delta: Delta = field(default_factory=dict)
    round: int = 1
    counted: bool = False
    """Whether this traversal counts toward the edge's bound."""
    resets: tuple[str, ...] = ()
    """Counters that start again at 0."""
    feedback: str | None = None
    """The approver's comment at a gate, for the next step."""


@dataclass(slots=True)
class EffectStarted(Event):
    """An effect is about to be performed."""

    id: EffectId
    kind: EffectKind
    digest: str
    payload: Any = None
    attempt: int = 1
    on_crash: str = "rerun"
    provider: str = ""
    """Who serves the agent's model, if the agent declares it."""
    chat: bool = False
    """Whether it is a single call of a model, and not a program that calls models itself."""


@dataclass(slots=True)
class EffectRunning(Event):
    """An effect's process has started; the next runner can end it if this one dies."""

    id: EffectId
    process: dict[str, Any]


@dataclass(slots=True)
class EffectAttemptFailed(Event):
    """An attempt at an effect met a transient error and is charged; a retry follows."""

    id: EffectId
    error: dict[str, Any]
    usage: dict[str, Any] | None = None


@dataclass(slots=True)
class EffectFinished(Event):
    """An effect ended with a reply or an error."""

    id: EffectId
    reply: Any = None
    error: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None
    item: int | None = None
    """The inbox item whose answer this is."""


@dataclass(slots=True)
class Logged(Event):
    """A handler added a line to the run's log."""

    text: str
    scope: str = ""
    """The fan-out item that logged it; empty at the top."""


@dataclass(slots=True)
class ItemFinished(Event):
    """One item of a fan-out has finished; it is never run again."""

    scope: str
    result: Any = None


@dataclass(slots=True)
class ItemFailed(Event):
    """One attempt at an item of a fan-out failed."""

    scope: str
    problem: str
    fresh: bool = False
    """Whether the next attempt starts over with the problem as feedback. Otherwise it repeats
    only the effects that failed, and the others are replayed."""


# Enums are converted by field name: a field of one of these names has this type in every event.
_ENUMS: dict[str, Callable[[str], Any]] = {"outcome": Outcome, "status": Status, "kind": EffectKind}


def _defaults(kind: type[Event]) -> tuple[tuple[str, Any], ...]:
    return tuple(
        (f.name, f.default if f.default_factory is MISSING else f.default_factory())
        for f in fields(kind)
    )


# Computed once, because every recorded event is compared with its defaults.
_FIELDS = {tag: _defaults(kind) for tag, kind in KINDS.items()}
_NAMES = {tag: frozenset(name for name, _ in listed) for tag, listed in _FIELDS.items()}


def to_json(event: Event) -> dict[str, Any]:
    """Returns an event as a JSON object, defaults left out."""
    data: dict[str, Any] = {"e": event.tag}
    for name, default in _FIELDS[event.tag]:
        value = getattr(event, name)
        # A reply can be anything, so with None it is compared only as far as `is` goes.
        if value is not default and (default is None or value != default):
            data[name] = value
    return data


def from_json(data: dict[str, Any]) -> Event:
    """Reads an event back."""
    if not isinstance(data, dict) or "e" not in data:
        raise StoreDamaged(f"the journal contains something that is not an event: {data!r:.80}")
    values = dict(data)
    tag = values.pop("e")
    # An event of a newer version is never skipped: a state without it would be wrong, and the run
    # would go on from there.
    kind = KINDS.get(str(tag))
    if kind is None:
        raise StoreTooNew(f"the journal contains an unknown event {tag!r}; upgrade signoff")
    if not values.keys() <= _NAMES[kind.tag]:
        unknown = values.keys() - _NAMES[kind.tag]
        raise StoreTooNew(
            f"the journal contains a {tag} event with an unknown field {min(unknown)!r}; "
            "upgrade signoff"
        )
    try:
        for name, convert in _ENUMS.items():
            if values.get(name) is not None:
                values[name] = convert(values[name])
        if "resets" in values:
            values["resets"] = tuple(values["resets"])
        return kind(**values)
    except (TypeError, ValueError) as error:
        raise StoreDamaged(f"the journal contains a damaged {tag} event: {error}") from error
