"""The state of a run: nothing but its events, folded.

`evolve` is the only code that changes a `RunState`. The runner applies each event as
it records it, a resume applies stored ones, and both end in the same state; the
checkpoint kept in the store is this state and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from signoff.core import events as ev
from signoff.core.delta import Delta, apply
from signoff.core.effects import Kind, scope_of
from signoff.core.frozen import STORED_DEPTH, FrozenDict, freeze
from signoff.core.outcome import Outcome, Status
from signoff.core.spend import LedgerEntry, Limits, Spend, Usage


class Stage(StrEnum):
    """How far the current visit of a step has come."""

    ENTER = "enter"
    WORK = "work"
    CHECK = "check"
    GATE = "gate"
    ESCALATED = "escalated"


@dataclass(slots=True)
class EffectRecord:
    """What is known of one effect of the current attempt."""

    kind: Kind
    digest: str
    attempt: int = 1
    done: bool = False
    reply: Any = None
    error: dict[str, Any] | None = None
    process: dict[str, Any] | None = None
    on_crash: str = "rerun"
    agent: str = ""
    """Who is asked, and for which model, when it is a call."""
    model: str = ""


@dataclass(slots=True)
class Pending:
    """What a step produced, held back until a person has decided."""

    outcome: Outcome | None
    delta: Delta
    problem: str = ""
    way: str = ""


@dataclass(slots=True)
class RunState:
    """Everything a runner has to know to go on."""

    workflow: str = ""
    definition: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    seed: str = ""
    folder: str = ""
    """Where it was started."""
    stand_ins: dict[str, str] = field(default_factory=dict)
    """Which agent answers in place of another, since somebody switched them."""
    status: Status = Status.RUNNING
    reason: str = ""
    due_at: float | None = None
    step: str | None = None
    """The step the run stands in; the last one when it has ended."""
    visits: dict[str, int] = field(default_factory=dict)
    iteration: int = 1
    attempt: int = 1
    stage: Stage = Stage.ENTER
    feedback: str | None = None
    counters: dict[str, int] = field(default_factory=dict)
    """How often each loop has gone round; under `ROUNDS`, how often more rounds were granted."""
    state: FrozenDict = field(default_factory=FrozenDict)
    """What the handlers have made so far."""
    outcome: Outcome | None = None
    """How the last finished step ended."""
    pending: Pending | None = None
    effects: dict[str, dict[str, EffectRecord]] = field(default_factory=dict)
    """Of the current attempt only, by scope and id; a finished step or item needs none."""
    items: dict[str, Any] = field(default_factory=dict)
    """Results of finished fan-out items of the current attempt, by scope."""
    item_failures: dict[str, list[str]] = field(default_factory=dict)
    """Why attempts at fan-out items fell short, by scope."""
    forgiven: dict[str, int] = field(default_factory=dict)
    """How many of those were before the run last failed: its resume grants new attempts."""
    spend: Spend = field(default_factory=Spend)
    visit_spend: Spend = field(default_factory=Spend)
    ledger: dict[tuple[str, str, str], LedgerEntry] = field(default_factory=dict)
    """The same by step, agent and model."""
    started_at: float = 0.0
    updated_at: float = 0.0
    active_since: float | None = None
    """When the time being counted began; None while nobody works the run."""
    adopted: bool = False
    """Whether the definition was changed since the current attempt began."""
    late: bool = False
    """Whether the current attempt goes on from what one before it had finished in time."""
    begun: int = 1
    """Which attempt was the last to begin from the step's top."""
    replaced: int = 0
    """Attempts at the current visit that could not go on so: they are no tries."""

    @property
    def visit(self) -> int:
        """Which time the current step is being visited."""
        return self.visits.get(self.step or "", 0)

    def effect(self, identity: str) -> EffectRecord | None:
        """Returns what is known of an effect of the current attempt."""
        return self.effects.get(scope_of(identity), {}).get(identity)


def fold(events: Iterable[ev.Event], state: RunState | None = None) -> RunState:
    """Applies events in order, from nothing or from a checkpoint."""
    state = state if state is not None else RunState()
    for event in events:
        evolve(state, event)
    return state


def evolve(state: RunState, event: ev.Event) -> None:
    """Applies one event."""
    _HOW[event.tag](state, event)
    state.updated_at = event.at


def _run_started(state: RunState, event: ev.RunStarted) -> None:
    state.workflow = event.workflow
    state.definition = event.definition
    state.params = freeze(event.params, STORED_DEPTH)
    state.limits = Limits.from_json(event.limits)
    state.seed = event.seed
    state.folder = event.folder
    state.step = event.entry
    state.visits = {event.entry: 1}
    state.started_at = event.at
    state.active_since = event.at


def _run_resumed(state: RunState, event: ev.RunResumed) -> None:
    # A failure that did not stop the run was handled, and is replayed like any other reply.
    every = state.status is Status.FAILED
    state.status = Status.RUNNING
    state.reason = ""
    state.due_at = None
    state.active_since = event.at
    for scope in state.effects:
        _forget_failed(state, scope, every=every)
        if every:
            _forget_last_command(state.effects[scope])
    if every:
        state.forgiven = {scope: len(found) for scope, found in state.item_failures.items()}


def _run_stopped(state: RunState, event: ev.RunStopped) -> None:
    _count_time(state, event.at)
    state.active_since = None
    state.status = event.status
    state.reason = event.reason
    state.due_at = event.due_at


def _limits_changed(state: RunState, event: ev.LimitsChanged) -> None:
    state.limits = Limits.from_json(event.limits)


def _agent_switched(state: RunState, event: ev.AgentSwitched) -> None:
    state.stand_ins[event.agent] = event.to


def _definition_adopted(state: RunState, event: ev.DefinitionAdopted) -> None:
    state.definition = event.definition
    state.adopted = True


def _step_begun(state: RunState, _event: ev.StepBegun) -> None:
    state.stage = Stage.WORK


def _step_worked(state: RunState, event: ev.StepWorked) -> None:
    state.stage = Stage.GATE
    state.pending = Pending(event.outcome, event.delta)


def _attempt_failed(state: RunState, event: ev.AttemptFailed) -> None:
    _next_attempt(state, event.problem, late=event.late)


def _escalated(state: RunState, event: ev.Escalated) -> None:
    state.stage = Stage.ESCALATED
    state.pending = Pending(event.outcome, event.delta, event.problem, event.way)


def _attempt_opened(state: RunState, event: ev.AttemptOpened) -> None:
    _next_attempt(state, event.feedback)


def _attempt_replaced(state: RunState, _event: ev.AttemptReplaced) -> None:
    stage = state.stage
    _next_attempt(state, state.feedback)
    state.replaced += 1
    if stage is Stage.ENTER:
        # Its preconditions have yet to hold.
        state.stage = stage


def _limit_lifted(state: RunState, event: ev.LimitLifted) -> None:
    if event.way == ev.ROUNDS:
        state.counters[ev.ROUNDS] = state.counters.get(ev.ROUNDS, 0) + 1
    else:
        state.counters.pop(event.way, None)


def _step_finished(state: RunState, event: ev.StepFinished) -> None:
    _count_time(state, event.at)
    state.state = apply(state.state, event.delta)
    state.outcome = event.outcome
    for key in event.resets:
        state.counters.pop(key, None)
    if event.counted:
        state.counters[event.way] = state.counters.get(event.way, 0) + 1
    state.iteration = event.iteration
    state.attempt, state.begun, state.replaced = 1, 1, 0
    state.stage = Stage.ENTER
    state.feedback = event.feedback
    _forget_attempt(state)
    state.visit_spend = Spend()
    if event.to is not None:
        state.step = event.to
        state.visits[event.to] = state.visits.get(event.to, 0) + 1


def _effect_started(state: RunState, event: ev.EffectStarted) -> None:
    known = state.effects.setdefault(scope_of(event.id), {})
    before = known.get(event.id)
    record = EffectRecord(event.kind, event.digest, event.attempt, on_crash=event.on_crash)
    known[event.id] = record
    if event.kind is not Kind.ASK:
        return
    # Counted when it starts, so a call that was in doubt still stands in the total.
    state.spend.calls += 1
    state.visit_spend.calls += 1
    if event.payload is not None:
        record.agent = event.payload.get("agent", "")
        record.model = event.payload.get("model") or ""
    elif before is not None:
        record.agent, record.model = before.agent, before.model
    if event.attempt > 1:
        _charge(state, before or record, event.lost)


def _effect_running(state: RunState, event: ev.EffectRunning) -> None:
    record = state.effect(event.id)
    if record is not None:
        record.process = event.process


def _effect_finished(state: RunState, event: ev.EffectFinished) -> None:
    _count_time(state, event.at)
    record = state.effect(event.id)
    if record is None:
        # A value the engine noted without going outside, such as the time.
        record = EffectRecord(Kind.NOW, "")
        state.effects.setdefault(scope_of(event.id), {})[event.id] = record
    record.done = True
    # A copy of its own: what the handler was given, it may change.
    record.reply = freeze(event.reply, STORED_DEPTH)
    record.error = event.error
    record.process = None
    if record.kind is Kind.ASK:
        by = event.reply.get("agent") if isinstance(event.reply, dict) else None
        _charge(state, record, event.usage, by)


def _charge(
    state: RunState, record: EffectRecord, told: dict[str, Any] | None, by: str | None = None
) -> None:
    """Puts one ended call on the bill, for whoever answered in the end."""
    usage = Usage(**told) if told is not None else None
    state.spend.add(usage)
    state.visit_spend.add(usage)
    model = (usage.model if usage is not None else None) or record.model
    # Anything may stand in an old journal, or in what an agent says of itself.
    place = (state.step or "", str(by or record.agent), str(model))
    entry = state.ledger.get(place) or LedgerEntry(*place)
    state.ledger[place] = entry.plus(usage)


def _item_finished(state: RunState, event: ev.ItemFinished) -> None:
    state.items[event.scope] = freeze(event.result, STORED_DEPTH)
    # A finished item is never replayed, so what its attempts asked for is of no more use.
    attempts = len(state.item_failures.pop(event.scope, ())) + 1
    state.forgiven.pop(event.scope, None)
    for attempt in range(1, attempts + 1):
        state.effects.pop(item_scope(event.scope, attempt), None)


def _item_failed(state: RunState, event: ev.ItemFailed) -> None:
    if event.fresh:
        state.item_failures.setdefault(event.scope, []).append(event.problem)
        return
    attempt = len(state.item_failures.get(event.scope, ())) + 1
    _forget_failed(state, item_scope(event.scope, attempt), every=True)


_HOW: dict[str, Callable[[RunState, Any], None]] = {
    ev.RunStarted.tag: _run_started,
    ev.RunResumed.tag: _run_resumed,
    ev.RunStopped.tag: _run_stopped,
    ev.LimitsChanged.tag: _limits_changed,
    ev.AgentSwitched.tag: _agent_switched,
    ev.DefinitionAdopted.tag: _definition_adopted,
    ev.StepBegun.tag: _step_begun,
    ev.StepWorked.tag: _step_worked,
    ev.AttemptFailed.tag: _attempt_failed,
    ev.Escalated.tag: _escalated,
    ev.AttemptOpened.tag: _attempt_opened,
    ev.AttemptReplaced.tag: _attempt_replaced,
    ev.LimitLifted.tag: _limit_lifted,
    ev.StepFinished.tag: _step_finished,
    ev.EffectStarted.tag: _effect_started,
    ev.EffectRunning.tag: _effect_running,
    ev.EffectFinished.tag: _effect_finished,
    ev.ItemFinished.tag: _item_finished,
    ev.ItemFailed.tag: _item_failed,
}


def item_scope(scope: str, attempt: int) -> str:
    """Returns the scope of one attempt at a fan-out item."""
    return scope if attempt == 1 else f"{scope}~{attempt}"


NO_ANSWER = frozenset({"AgentQuota", "AgentStopped"})
"""Errors that only say "not now": no handler has seen them, the run rested instead."""


def _forget_last_command(known: dict[str, EffectRecord]) -> None:
    """Drops a program that failed just before the run did: what it found wrong may be mended.

    Only the last effect of its scope: on an earlier one its handler has built since.
    """
    last = next(reversed(known), None)
    if last is None or known[last].kind is not Kind.COMMAND or not known[last].done:
        return
    reply = known[last].reply
    if isinstance(reply, dict) and reply.get("code"):
        del known[last]


def _forget_failed(state: RunState, scope: str, *, every: bool) -> None:
    """Drops failed effects, so that they are performed again while the others are kept."""
    known = state.effects.get(scope)
    if known and any(record.error for record in known.values()):
        state.effects[scope] = {
            key: record
            for key, record in known.items()
            if record.error is None or not (every or record.error.get("type") in NO_ANSWER)
        }


def _next_attempt(state: RunState, feedback: str | None, *, late: bool = False) -> None:
    effects, items = _finished(state) if late else ({}, {})
    state.attempt += 1
    state.feedback = feedback
    state.stage = Stage.WORK
    _forget_attempt(state)
    if effects:
        state.effects, state.items, state.late = effects, items, True
    else:
        state.begun = state.attempt


def _finished(state: RunState) -> tuple[dict[str, dict[str, EffectRecord]], dict[str, Any]]:
    """Returns what an attempt that ran out of time leaves to the next: it has seen that much.

    Items of a fan-out are kept or worked again as a whole. The fan-out itself is kept to tell
    whether the next attempt works the same items.
    """
    own = {
        key: record
        for key, record in state.effects.get("", {}).items()
        if record.kind is Kind.MAP or (record.done and _was_seen(key, record))
    }
    items = {scope: result for scope, result in state.items.items() if scope.count("[") == 1}
    if not items and not any(record.done for record in own.values()):
        return {}, {}
    return {"": own}, items


def _was_seen(key: str, record: EffectRecord) -> bool:
    """Tells whether a handler got this; what people were asked about an effect, the engine did."""
    stopped = record.error is not None and record.error.get("type") in NO_ANSWER
    return not stopped and "?" not in key.rpartition("#")[2]


def _forget_attempt(state: RunState) -> None:
    state.pending = None
    state.adopted = state.late = False
    if state.effects:
        state.effects = {}
    if state.items:
        state.items = {}
    if state.item_failures:
        state.item_failures, state.forgiven = {}, {}


def _count_time(state: RunState, at: float) -> None:
    if state.active_since is None:
        return
    took = max(0.0, at - state.active_since)
    state.spend.seconds += took
    state.visit_spend.seconds += took
    state.active_since = at
