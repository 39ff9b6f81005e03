"""The transition rules, all of them.

A run stands in one step, at one stage of its visit:

    ENTER ──held──► WORK ──returned──► CHECK ──held──► GATE ──chosen──► (the next step)
      │              │ │                 │               │
    broken        raised fell short    broken         accepted: leave by the outcome
      │              │ └──────┬──────────┘
      ▼              ▼        ▼
    stop      on_error edge  retry with feedback, then ESCALATED: a person says
              or stop        retry, accept or stop

The runner observes a fact (conditions held or broke, the handler returned or raised,
a person chose), asks `decide`, and acts on the value it gets. Nothing else in signoff
decides where a run goes. `TABLE` is the whole of it; a fact that has no row at a stage
is an error in the engine, never a silent step forward. A single call and an item of a
fan-out follow the same rule, retry and then ask a human: see `request_rules`.
Stages a step has no use for (no conditions, no gate) are passed over: it is left by its
outcome.

Leaving a step goes through `leave`, which is where loops are counted: a back edge at
its bound is a `Limit`, and rounds beyond `max_iterations` are one too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from signoff.core.edges import ERROR, ResolvedEdge, gate_name
from signoff.core.error_info import ErrorInfo
from signoff.core.events import ROUNDS
from signoff.core.outcome import End, Outcome, Status
from signoff.core.run_state import Stage
from signoff.core.stop_reason import (
    EdgeLimit,
    IterationLimit,
    PreconditionFailed,
    Rejected,
    StepDecided,
    StepError,
    StopReason,
)
from signoff.errors import EngineError, UnmappedOutcome

if TYPE_CHECKING:
    from signoff.core.workflow import Workflow

RETRY, ACCEPT, STOP, GO_ON = "retry", "accept", "stop", "continue"
"""What a person can say to an escalation."""


class Position(NamedTuple):
    """Where a run stands when a fact is observed."""

    workflow: Workflow
    step: str
    stage: Stage
    attempt: int
    iteration: int
    counters: Mapping[str, int]
    outcome: Outcome | None = None
    """What the handler returned, once it has."""
    way: str = ""
    """The edge whose bound was reached, or `ROUNDS`, while a person decides about it."""


@dataclass(frozen=True, slots=True)
class ConditionsMet:
    """All conditions are true (or there are none)."""


@dataclass(frozen=True, slots=True)
class ConditionsBroken:
    """Some condition is false."""

    problem: str


@dataclass(frozen=True, slots=True)
class Returned:
    """The handler returned."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class FellShort:
    """The work was done and is not good enough, or took too long; another try may help."""

    problem: str
    late: bool = False
    """Whether it only took too long."""
    usable: bool = False
    """Whether it counts as it is once no retry is left."""


@dataclass(frozen=True, slots=True)
class Raised:
    """The handler raised; trying the same again would not help."""

    error: ErrorInfo

    @property
    def problem(self) -> str:
        """What to tell people."""
        return self.error.message


@dataclass(frozen=True, slots=True)
class Chosen:
    """A person chose, and perhaps wrote something."""

    label: str
    text: str = ""
    by: str = ""


Fact = ConditionsMet | ConditionsBroken | Returned | FellShort | Raised | Chosen


@dataclass(frozen=True, slots=True)
class Proceed:
    """Go on to a later stage of the same visit."""

    stage: Stage


@dataclass(frozen=True, slots=True)
class Retry:
    """Work the step again, knowing this."""

    feedback: str
    by_person: bool = False
    late: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """A person must say how to go on."""

    problem: str
    options: tuple[str, ...]
    way: str = ""


@dataclass(frozen=True, slots=True)
class Move:
    """Leave by this edge for another step."""

    way: ResolvedEdge
    to: str
    iteration: int
    resets: tuple[str, ...] = ()
    feedback: str | None = None


@dataclass(frozen=True, slots=True)
class Finish:
    """The run ends; by an edge, or where it stands when it cannot go on."""

    status: Status
    reason: StopReason | None = None
    way: ResolvedEdge | None = None


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound is reached and the run ends there, by name."""

    way: ResolvedEdge
    reason: IterationLimit | EdgeLimit


@dataclass(frozen=True, slots=True)
class Lift:
    """A person lets the run go on beyond a limit: lift it, then leave as before."""

    way: str


Decision = Proceed | Retry | Wait | Move | Finish | Limit | Lift
Rule = Callable[[Position, Any], Decision]
"""Takes exactly the facts its rows in the table name."""


def decide(position: Position, fact: Fact) -> Decision:
    """Says what follows from a fact where the run stands."""
    rule = TABLE.get((position.stage, type(fact)))
    if rule is None:
        raise EngineError(f"no rule for {type(fact).__name__} at stage {position.stage.value}")
    return rule(position, fact)


def _to(stage: Stage) -> Rule:
    return lambda _position, _fact: Proceed(stage)


def _worked(position: Position, fact: Returned) -> Decision:
    """Goes on to whatever is left of the visit: its conditions, its gate, or its end."""
    if position.workflow[position.step].postconditions:
        return Proceed(Stage.CHECK)
    if position.outcome is not fact.outcome:
        position = position._replace(outcome=fact.outcome)
    return _checked(position, _HELD)


def _checked(position: Position, fact: ConditionsMet) -> Decision:
    if position.outcome is Outcome.OK and position.workflow[position.step].gate is not None:
        return Proceed(Stage.GATE)
    return _past_the_gate(position, fact)


def _not_ready(position: Position, fact: ConditionsBroken) -> Decision:
    return Finish(Status.FAILED, PreconditionFailed(position.step, fact.problem))


def _stop(position: Position, fact: Raised) -> Decision:
    return Finish(Status.FAILED, StepError(position.step, fact.error))


def _recover(position: Position, fact: Raised) -> Decision:
    """A handler that raised goes where `on_error` says, and otherwise stops the run."""
    way = position.workflow.edges.get(position.step, ERROR)
    return leave(position, way) if way is not None else _stop(position, fact)


def _try_again(position: Position, fact: ConditionsBroken | FellShort) -> Decision:
    """One more try with the reason as feedback; then a person."""
    retries = position.workflow[position.step].retries
    return retry(position.attempt, retries, fact) or Wait(fact.problem, answers(position))


def retry(attempt: int, retries: int, fact: ConditionsBroken | FellShort) -> Retry | None:
    """Returns the next try while the engine has one left; this one rule serves every scope."""
    if attempt > retries:
        return None
    return Retry(fact.problem, late=isinstance(fact, FellShort) and fact.late)


def _past_the_gate(position: Position, _fact: ConditionsMet) -> Decision:
    outcome = position.outcome
    if outcome is None:
        raise EngineError(f"step {position.step!r} is left without an outcome")
    way = position.workflow.edges.find(position.step, outcome)
    if way is None:
        mapped = ", ".join(w.name for w in position.workflow.edges.from_step(position.step))
        raise UnmappedOutcome(
            f"step {position.step!r} ended with {outcome.value!r}, which leads nowhere "
            f"(its edges: {mapped or 'none'})"
        )
    return leave(position, way)


def _through_the_gate(position: Position, fact: Chosen) -> Decision:
    way = position.workflow.edges.get(position.step, gate_name(fact.label))
    if way is None:
        raise EngineError(f"the gate of step {position.step!r} has no option {fact.label!r}")
    return leave(position, way, feedback=fact.text or None, by=fact.by)


def _person_decides(position: Position, fact: Chosen) -> Decision:
    if fact.label not in answers(position):
        raise EngineError(f"{fact.label!r} is no answer to the escalation of {position.step!r}")
    if fact.label == RETRY:
        return Retry(fact.text or "a person asked for another try", by_person=True)
    if fact.label == ACCEPT:
        return Proceed(Stage.GATE)
    if fact.label == GO_ON:
        return Lift(position.way)
    return Finish(Status.REJECTED, Rejected(fact.by, fact.text))


def answers(position: Position) -> tuple[str, ...]:
    """Returns what a person may say where the engine's own means are used up."""
    if position.way:
        return (GO_ON, STOP)
    return (RETRY, ACCEPT, STOP) if position.outcome is not None else (RETRY, STOP)


_HELD = ConditionsMet()

TABLE: Mapping[tuple[Stage, type[Fact]], Rule] = {
    (Stage.ENTER, ConditionsMet): _to(Stage.WORK),
    (Stage.ENTER, ConditionsBroken): _not_ready,
    (Stage.WORK, Returned): _worked,
    (Stage.WORK, FellShort): _try_again,
    (Stage.WORK, Raised): _recover,
    (Stage.CHECK, ConditionsMet): _checked,
    (Stage.CHECK, ConditionsBroken): _try_again,
    (Stage.CHECK, Raised): _stop,
    (Stage.GATE, ConditionsMet): _past_the_gate,
    (Stage.GATE, Chosen): _through_the_gate,
    (Stage.ESCALATED, Chosen): _person_decides,
}


def leave(
    position: Position, way: ResolvedEdge, *, feedback: str | None = None, by: str = ""
) -> Decision:
    """Takes an edge, unless its bound or the round limit is reached."""
    count = position.counters.get(way.key, 0)
    if way.bound is not None and count >= way.bound:
        return _at_limit(way, way.key, EdgeLimit(way.step, way.name, way.bound))
    iteration = position.iteration + way.edge.starts_iteration
    rounds = _rounds(position)
    if way.edge.starts_iteration and rounds is not None and iteration > rounds:
        return _at_limit(way, ROUNDS, IterationLimit(rounds))
    if way.to is None or isinstance(way.to, End):
        status = Status.COMPLETED if way.to is None else way.to.status
        return Finish(status, _own_reason(status, feedback, by), way)
    return Move(way, way.to, iteration, _resets(position, way), feedback)


def _own_reason(status: Status, text: str | None, by: str) -> StopReason | None:
    """Returns what whoever chose at a gate gives as the reason for the end they chose."""
    if by and status is Status.REJECTED:
        return Rejected(by, text or "")
    return StepDecided(text) if text else None


def _rounds(position: Position) -> int | None:
    """Returns how many rounds there may be: what the author set, as often as it was granted."""
    rounds = position.workflow.max_iterations
    return None if rounds is None else rounds * (1 + position.counters.get(ROUNDS, 0))


def _at_limit(way: ResolvedEdge, key: str, reason: IterationLimit | EdgeLimit) -> Decision:
    if way.edge.on_limit == "ask":
        return Wait(str(reason), (GO_ON, STOP), key)
    return Limit(way, reason)


def _resets(position: Position, way: ResolvedEdge) -> tuple[str, ...]:
    """Counts of a step's loops start anew only when it is left by an edge that loops nowhere."""
    if way.back:
        return ()
    others = [w for w in position.workflow.edges.from_step(way.step) if w.key != way.key]
    return tuple(w.key for w in others if w.edge.resets and w.key in position.counters)
