"""All transition rules: where a run goes next.

A run is in one step, at one stage of its visit:

    ENTER ──held──► WORK ──returned──► CHECK ──held──► GATE ──chosen──► (the next step)
      │              │ │                 │               │
    broken        raised fell short    broken         accepted: leave by the outcome
      │              │ └──────┬──────────┘
      ▼              ▼        ▼
    stop      on_error edge  retry with feedback, then ESCALATED: a human chooses
              or stop        retry, accept or stop

The runner observes a fact (conditions held or broke, the handler returned or raised, a human
chose), calls `decide`, and performs the decision it gets. Nothing else in signoff decides
where a run goes. `TABLE` lists every fact that can occur at a stage. A fact without a row is
an error of the engine and never a silent step forward. Stages that a step does not use (no
conditions, no gate) are skipped. A single call and an item of a fan-out follow the same rule,
retry and then ask a human: see `request_rules`.

Every step is left through `leave`, where loops are bounded: a back edge that has reached its
bound is a `Limit`, and so is a round beyond `max_iterations`. The functions here are pure.
The counters come in with the position, and the fold increases them when the event is recorded,
so a replay decides exactly as the first run did.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from signoff.core import stop_reason
from signoff.core.edges import ERROR, ResolvedEdge, gate_name
from signoff.core.errors import EngineError
from signoff.core.events import ROUNDS, lifts_of
from signoff.core.outcome import End, Outcome, Status
from signoff.core.questions import Option
from signoff.core.requests import RETRY
from signoff.core.run_state import Stage

if TYPE_CHECKING:
    from signoff.core.workflow import Workflow


ACCEPT, STOP, CONTINUE = "accept", "stop", "continue"
"""What a human can choose in an escalation, besides `RETRY`."""

REMARK = "A human wrote: "
"""Separates a problem from what a human added to it."""


class Position(NamedTuple):
    """Where a run is when a fact is observed."""

    workflow: Workflow
    step: str
    stage: Stage
    attempt: int
    iteration: int
    counters: Mapping[str, int]
    outcome: Outcome | None = None
    """What the handler returned, once it has."""
    edge_key: str = ""
    """The edge whose bound was reached, or `ROUNDS`, while a human decides about it."""
    problem: str = ""
    """What was wrong with the last attempt, while a human decides about it."""


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
    """The work is not good enough, or took too long; a retry may help."""

    problem: str
    late: bool = False
    """Whether the only problem is that it took too long."""
    usable: bool = False
    """Whether it is accepted as it is once no retry is left."""


@dataclass(frozen=True, slots=True)
class Raised:
    """The handler raised; a retry would raise again."""

    error: stop_reason.ErrorInfo
    unfollowed: bool = False
    """Whether the step has instructions that no agent has followed."""

    @property
    def problem(self) -> str:
        """The error's message, for humans."""
        return self.error.message


@dataclass(frozen=True, slots=True)
class Chosen:
    """A human chose an option, perhaps with a comment."""

    label: str
    text: str = ""
    by: str = ""


Fact = ConditionsMet | ConditionsBroken | Returned | FellShort | Raised | Chosen


@dataclass(frozen=True, slots=True)
class Proceed:
    """Continue with a later stage of the same visit."""

    stage: Stage


@dataclass(frozen=True, slots=True)
class Retry:
    """Run the step's handler again with this feedback."""

    feedback: str
    by_human: bool = False
    late: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """A human must decide how to continue."""

    problem: str
    options: tuple[str, ...]
    edge_key: str = ""


@dataclass(frozen=True, slots=True)
class Move:
    """Leave by this edge for another step."""

    edge: ResolvedEdge
    to: str
    iteration: int
    resets: tuple[str, ...] = ()
    feedback: str | None = None


@dataclass(frozen=True, slots=True)
class Finish:
    """The run ends: by an edge, or inside a step that cannot continue."""

    status: Status
    reason: stop_reason.StopReason | None = None
    edge: ResolvedEdge | None = None


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound is reached, and the run ends with that as its reason."""

    edge: ResolvedEdge
    reason: stop_reason.RoundLimit | stop_reason.EdgeLimit


@dataclass(frozen=True, slots=True)
class Lift:
    """A human lets the run continue beyond a limit: lift it, then leave the step again."""

    edge_key: str


Decision = Proceed | Retry | Wait | Move | Finish | Limit | Lift
Rule = Callable[[Position, Any], Decision]
"""Accepts exactly the facts that its rows in the table name."""


def decide(position: Position, fact: Fact) -> Decision:
    """Returns what follows from a fact at a position."""
    rule = TABLE.get((position.stage, type(fact)))
    if rule is None:
        raise EngineError(f"no rule for {type(fact).__name__} at stage {position.stage.value}")
    return rule(position, fact)


def _after_work(position: Position, fact: Returned) -> Decision:
    """Returns the next stage the step has: its postconditions, its gate, or its end."""
    if position.workflow[position.step].postconditions:
        return Proceed(Stage.CHECK)
    # Without postconditions the CHECK stage is skipped, so its rule needs the outcome now.
    if position.outcome is not fact.outcome:
        position = position._replace(outcome=fact.outcome)
    return _after_check(position, _MET)


def _after_check(position: Position, fact: ConditionsMet) -> Decision:
    if position.outcome is Outcome.OK and position.workflow[position.step].gate is not None:
        return Proceed(Stage.GATE)
    return _leave_by_outcome(position, fact)


def _not_ready(position: Position, fact: ConditionsBroken) -> Decision:
    return Finish(Status.FAILED, stop_reason.PreconditionFailed(position.step, fact.problem))


def _stop(position: Position, fact: Raised) -> Decision:
    return Finish(Status.FAILED, stop_reason.StepError(position.step, fact.error))


def _recover(position: Position, fact: Raised) -> Decision:
    """Follows the `on_error` edge; without one, an error stops the run."""
    edge = position.workflow.edges.get(position.step, ERROR)
    # The edge is for errors of handlers. If it led past an agent that failed, a run could
    # complete although no one has followed its instructions.
    if edge is None or fact.unfollowed:
        return _stop(position, fact)
    return leave(position, edge)


def _retry_or_escalate(position: Position, fact: ConditionsBroken | FellShort) -> Decision:
    """Retries with the problem as feedback while retries are left, then asks a human."""
    retries = position.workflow[position.step].retries
    return retry(position.attempt, retries, fact) or Wait(fact.problem, answers(position))


def retry(attempt: int, retries: int, fact: ConditionsBroken | FellShort) -> Retry | None:
    """Returns a retry if one is left; steps, fan-out items and single calls share this rule."""
    # Attempts count from 1, so with one retry the first attempt may fail and the second may not.
    if attempt > retries:
        return None
    return Retry(fact.problem, late=isinstance(fact, FellShort) and fact.late)


def _leave_by_outcome(position: Position, _fact: ConditionsMet) -> Decision:
    outcome = position.outcome
    if outcome is None:
        raise EngineError(f"step {position.step!r} is left without an outcome")
    edge = position.workflow.edges.need(position.step, outcome)
    return leave(position, edge)


def _leave_by_gate(position: Position, fact: Chosen) -> Decision:
    edge = position.workflow.edges.get(position.step, gate_name(fact.label))
    # An option that the definition no longer has must never count as any other: the run stops here
    # rather than passing a gate that nobody opened.
    if edge is None:
        raise EngineError(f"the gate of step {position.step!r} has no option {fact.label!r}")
    return leave(position, edge, feedback=fact.text or None, by=fact.by)


def _human_decides(position: Position, fact: Chosen) -> Decision:
    # What a human could choose follows from the position alone, so an answer that was given to
    # another question, or forged in a file, is refused here as well.
    if fact.label not in answers(position):
        raise EngineError(f"{fact.label!r} is not an option in the escalation of {position.step!r}")
    if fact.label == RETRY:
        return Retry(with_remark(position.problem, fact.text), by_human=True)
    if fact.label == ACCEPT:
        return Proceed(Stage.GATE)
    if fact.label == CONTINUE:
        return Lift(position.edge_key)
    return Finish(Status.REJECTED, stop_reason.Rejected(fact.by, fact.text))


def with_remark(problem: str, text: str) -> str:
    """Returns the real problem, and what the human wrote about it: the worker needs both."""
    if not text:
        return problem or "a human requested a retry"
    return f"{problem}\n{REMARK}{text}" if problem else text


def answers(position: Position) -> tuple[str, ...]:
    """Returns what a human can choose at an escalation."""
    # At a limit there is nothing to redo or to accept. Without an outcome the handler never
    # returned, so there is no result that could be accepted.
    if position.edge_key:
        return (CONTINUE, STOP)
    return (RETRY, ACCEPT, STOP) if position.outcome is not None else (RETRY, STOP)


def escalation_options(position: Position) -> tuple[Option, ...]:
    """Returns what a human can choose at an escalation, and what each option leads to."""
    return tuple(
        Option(label, description=_granted(position) if label == CONTINUE else _MEANINGS[label])
        for label in answers(position)
    )


def _granted(position: Position) -> str:
    most = position.workflow.max_iterations
    if position.edge_key == ROUNDS and most is not None:
        return "allow 1 more round" if most == 1 else f"allow {most} more rounds"
    return "let the loop be taken as often again"


_MEANINGS = {
    RETRY: "run the step again; it gets the problem, and what you write, as feedback",
    ACCEPT: "continue with the result as it is",
    STOP: "end the run now; what it has made so far is kept",
}
_MET = ConditionsMet()

TABLE: Mapping[tuple[Stage, type[Fact]], Rule] = {
    (Stage.ENTER, ConditionsMet): lambda _position, _fact: Proceed(Stage.WORK),
    (Stage.ENTER, ConditionsBroken): _not_ready,
    (Stage.ENTER, Raised): _stop,
    (Stage.WORK, Returned): _after_work,
    (Stage.WORK, FellShort): _retry_or_escalate,
    (Stage.WORK, Raised): _recover,
    (Stage.CHECK, ConditionsMet): _after_check,
    (Stage.CHECK, ConditionsBroken): _retry_or_escalate,
    (Stage.CHECK, Raised): _stop,
    (Stage.GATE, ConditionsMet): _leave_by_outcome,
    (Stage.GATE, Chosen): _leave_by_gate,
    (Stage.ESCALATED, Chosen): _human_decides,
}


def leave(
    position: Position, edge: ResolvedEdge, *, feedback: str | None = None, by: str = ""
) -> Decision:
    """Takes an edge, unless its bound or the limit on rounds is reached."""
    # The edge's own bound is checked before the limit on rounds: its message names the loop.
    count, lifted = (position.counters.get(key, 0) for key in (edge.key, lifts_of(edge.key)))
    if edge.bound is not None and count - lifted >= edge.bound:
        return _at_limit(edge, edge.key, stop_reason.EdgeLimit(edge.step, edge.name, edge.bound))
    iteration = position.iteration + edge.definition.starts_iteration
    most = _max_iterations(position, edge)
    if edge.definition.starts_iteration and most is not None and iteration > most:
        return _at_limit(edge, ROUNDS, stop_reason.RoundLimit(most))
    if edge.to is None or isinstance(edge.to, End):
        status = Status.COMPLETED if edge.to is None else edge.to.status
        return Finish(status, _reason_from_gate(status, feedback, by), edge)
    return Move(edge, edge.to, iteration, _resets(position, edge), feedback)


def _reason_from_gate(status: Status, text: str | None, by: str) -> stop_reason.StopReason | None:
    """Returns the reason that the approver wrote when choosing to end the run at a gate."""
    if by and status is Status.REJECTED:
        return stop_reason.Rejected(by, text or "")
    return stop_reason.StepDecided(text) if text else None


def _max_iterations(position: Position, leaving: ResolvedEdge) -> int | None:
    """Returns how many rounds are allowed once a step is left by this edge.

    Each time a human lifts the limit adds as many as were declared. A human's request that leads
    through an edge that grants a round adds one: what was asked for must not be cut off.
    """
    declared, counters = position.workflow.max_iterations, position.counters
    if declared is None:
        return None
    granted = sum(counters.get(key, 0) for key in position.workflow.edges.granting)
    # The fold counts this traversal only after it was decided.
    granted += leaving.definition.grants_iteration
    return declared * (1 + counters.get(ROUNDS, 0)) + granted


def _at_limit(
    edge: ResolvedEdge, key: str, reason: stop_reason.RoundLimit | stop_reason.EdgeLimit
) -> Decision:
    # A limit is never crossed silently: either a human lifts it, or the run ends and says which
    # one.
    if edge.definition.on_limit == "ask":
        return Wait(str(reason), (CONTINUE, STOP), key)
    return Limit(edge, reason)


def _resets(position: Position, edge: ResolvedEdge) -> tuple[str, ...]:
    """Returns the counters that start again at 0 when a step is left by this edge.

    A back edge resets nothing: two loops that reset each other's count would never end.
    """
    # The count of a loop that is being taken must survive it, or its bound would never be reached.
    if edge.back:
        return ()
    others = [e for e in position.workflow.edges.from_step(edge.step) if e.key != edge.key]
    keys = [key for e in others if e.definition.resets for key in (e.key, lifts_of(e.key))]
    return tuple(key for key in keys if key in position.counters)


# The transition rules for one request: a checked call, an item of a fan-out, or a whole fan-out.
#
# A step has stages, edges and gates; a request only falls short, raises, or is decided by a human.
# What is retried, and for how long, is the rule that steps have.


class RequestPosition(NamedTuple):
    """How far a checked call, an item of a fan-out or a whole fan-out has come."""

    attempt: int
    retries: int
    options: tuple[str, ...] = ()
    """What a human can choose; empty where no human is asked."""


@dataclass(frozen=True, slots=True)
class Accept:
    """Continue with the last answer, or with what the human chose in its place."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Raise it to the caller."""

    problem: str


RequestFact = FellShort | Raised | Chosen
RequestDecision = Retry | Wait | Accept | GiveUp


def decide_request(position: RequestPosition, fact: RequestFact) -> RequestDecision:
    """Says what follows from a fact about one request."""
    return REQUEST_TABLE[type(fact)](position, fact)


def _request_fell_short(position: RequestPosition, fact: FellShort) -> RequestDecision:
    if again := retry(position.attempt, position.retries, fact):
        return again
    if fact.usable:
        return Accept()
    return Wait(fact.problem, position.options) if position.options else GiveUp(fact.problem)


def _request_chosen(position: RequestPosition, fact: Chosen) -> RequestDecision:
    if fact.label not in position.options:
        raise EngineError(f"{fact.label!r} is not one of {', '.join(position.options)}")
    return Retry(fact.text, by_human=True) if fact.label == RETRY else Accept()


REQUEST_TABLE: Mapping[type[RequestFact], Callable[[RequestPosition, Any], RequestDecision]] = {
    FellShort: _request_fell_short,
    Raised: lambda _position, fact: GiveUp(fact.problem),
    Chosen: _request_chosen,
}
