"""Folds the events of a run into its state.

`evolve` is the only code that changes a `RunState`. The runner applies each event when it
records it, and a resume applies the stored events in the same order, so both end in the same
state. A checkpoint in the store is this state and nothing else. That is why no function here
may look at the clock, the settings or the workflow: everything must follow from the events.

The state only holds what a runner needs to continue. Effects are kept for the current attempt
and forgotten when a step or a fan-out item finishes, so a run of any length stays small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

from signoff.core import events as ev
from signoff.core.delta import apply
from signoff.core.digest import line_digest
from signoff.core.effects import EffectKind, scope_of
from signoff.core.errors import StoreDamaged
from signoff.core.frozen import CHECKPOINT_DEPTH, STORED_DEPTH, freeze
from signoff.core.outcome import Outcome, Status
from signoff.core.run_state import EffectRecord, PendingResult, RunState, Stage
from signoff.core.spend import LedgerEntry, Limits, Spend, Usage
from signoff.core.stop_reason import reason_from_json


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
    # The three cases of a resume differ only here, in what the current attempt forgets: nothing
    # after a wait or a kill, what was put off after a quota, all failures after an error.
    # A failed run gets a new chance: its failed effects are performed again. A failure that did
    # not stop the run was handled by the handler, so it is replayed like any other reply.
    every = state.status is Status.FAILED
    state.status = Status.RUNNING
    state.reason = ""
    state.stop_reason = None
    state.due_at = None
    state.active_since = event.at
    for scope in state.effects:
        forget_failed(state, scope, every=every)
        if every:
            forget_last_command(state.effects[scope])
    if every:
        state.forgiven = {scope: len(failures) for scope, failures in state.item_failures.items()}


def _run_stopped(state: RunState, event: ev.RunStopped) -> None:
    count_time(state, event.at)
    state.active_since = None
    state.status = event.status
    state.reason = event.reason
    state.stop_reason = reason_from_json(event.stop_reason)
    state.due_at = event.due_at


def _limits_changed(state: RunState, event: ev.LimitsChanged) -> None:
    state.limits = Limits.from_json(event.limits)


def _agent_switched(state: RunState, event: ev.AgentSwitched) -> None:
    state.stand_ins[event.agent] = event.to


def _params_corrected(state: RunState, event: ev.ParamsCorrected) -> None:
    state.params = freeze({**state.params, **event.params}, STORED_DEPTH)
    # The current attempt may ask for something else now than what is recorded of it.
    state.adopted = True


def _definition_adopted(state: RunState, event: ev.DefinitionAdopted) -> None:
    state.definition = event.definition
    state.adopted = True


def _step_begun(state: RunState, _event: ev.StepBegun) -> None:
    state.stage = Stage.WORK


def _step_worked(state: RunState, event: ev.StepWorked) -> None:
    state.stage = Stage.GATE
    state.pending = PendingResult(event.outcome, event.delta)


def _attempt_failed(state: RunState, event: ev.AttemptFailed) -> None:
    next_attempt(state, event.problem, late=event.late)


def _escalated(state: RunState, event: ev.Escalated) -> None:
    state.stage = Stage.ESCALATED
    state.pending = PendingResult(event.outcome, event.delta, event.problem, event.way)


def _attempt_opened(state: RunState, event: ev.AttemptOpened) -> None:
    next_attempt(state, event.feedback)


def _attempt_replaced(state: RunState, _event: ev.AttemptReplaced) -> None:
    stage, answers = state.stage, state.previous_answers
    next_attempt(state, state.feedback)
    state.previous_answers = answers
    state.replaced += 1
    if stage is Stage.ENTER:
        # Its preconditions have not been checked yet.
        state.stage = stage


def _limit_lifted(state: RunState, event: ev.LimitLifted) -> None:
    # The edge's own count goes on: an edge that grants rounds has granted as many as it counts,
    # and without them the limit on rounds would be reached at once, again and again.
    key = ev.lifts_of(event.way)
    if event.way == ev.ROUNDS:
        state.counters[key] = state.counters.get(key, 0) + 1
    else:
        # Not how often: another bound may be adopted, and counts from here.
        state.counters[key] = state.counters.get(event.way, 0)


def _step_finished(state: RunState, event: ev.StepFinished) -> None:
    count_time(state, event.at)
    # Everything about a step's end is in this one event. If the delta, the edge and the entry of
    # the next step were three, a kill in between would leave a state that no handler expects.
    state.state = apply(state.state, event.delta)
    state.outcome = event.outcome
    for key in event.resets:
        state.counters.pop(key, None)
    if event.counted:
        state.counters[event.way] = state.counters.get(event.way, 0) + 1
    state.iteration = event.round
    state.attempt, state.begun, state.replaced = 1, 1, 0
    state.stage = Stage.ENTER
    state.feedback, state.previous_answers = event.feedback, {}
    forget_attempt(state)
    state.visit_spend = Spend()
    if event.to is not None:
        state.step = event.to
        state.visits[event.to] = state.visits.get(event.to, 0) + 1


def _effect_started(state: RunState, event: ev.EffectStarted) -> None:
    records = state.effects.setdefault(scope_of(event.id), {})
    before = records.get(event.id)
    record = EffectRecord(event.kind, event.digest, event.attempt, on_crash=event.on_crash)
    records[event.id] = record
    if event.kind is not EffectKind.ASK:
        return
    # Calls are counted when they start, so that one in doubt is included in the total.
    state.spend.calls += 1
    state.visit_spend.calls += 1
    if event.payload is not None:
        record.agent = event.payload.get("agent", "")
        record.model = event.payload.get("model") or ""
    elif before is not None:
        record.agent, record.model = before.agent, before.model
    # The attempt before this one was in doubt: nothing else has charged it.
    if event.attempt > 1 and not (before is not None and before.ended):
        charge(state, before or record, None)


def _effect_running(state: RunState, event: ev.EffectRunning) -> None:
    record = state.effect(event.id)
    if record is not None:
        record.process = event.process


def _effect_attempt_failed(state: RunState, event: ev.EffectAttemptFailed) -> None:
    count_time(state, event.at)
    record = state.effect(event.id)
    if record is None:
        return
    record.ended, record.process = True, None
    if record.kind is EffectKind.ASK:
        charge(state, record, event.usage)


def _effect_finished(state: RunState, event: ev.EffectFinished) -> None:
    count_time(state, event.at)
    record = state.effect(event.id)
    if record is None:
        # A value that the engine recorded without an effect, such as the time.
        record = EffectRecord(EffectKind.NOW, "")
        state.effects.setdefault(scope_of(event.id), {})[event.id] = record
    record.done = True
    # A copy: the handler gets the original and may change it.
    record.reply = freeze(event.reply, STORED_DEPTH)
    record.error = event.error
    record.process = None
    if record.kind is EffectKind.ASK:
        by = event.reply.get("agent") if isinstance(event.reply, dict) else None
        charge(state, record, event.usage, by)


def charge(
    state: RunState, record: EffectRecord, reported: dict[str, Any] | None, by: str | None = None
) -> None:
    """Adds one ended call to the spend and the ledger, under the agent that answered."""
    usage = Usage(**reported) if reported is not None else None
    state.spend.add(usage)
    state.visit_spend.add(usage)
    model = (usage.model if usage is not None else None) or record.model
    # Agents report these themselves, so they may not be texts.
    key = (state.step or "", str(by or record.agent), str(model))
    entry = state.ledger.get(key) or LedgerEntry(*key)
    state.ledger[key] = entry.plus(usage)


def _item_finished(state: RunState, event: ev.ItemFinished) -> None:
    state.items[event.scope] = freeze(event.result, STORED_DEPTH)
    # A finished item is never replayed, so the effects of its attempts are not needed any more.
    attempts = len(state.item_failures.pop(event.scope, ())) + 1
    state.forgiven.pop(event.scope, None)
    for attempt in range(1, attempts + 1):
        state.effects.pop(item_scope(event.scope, attempt), None)
        state.logged.pop(item_scope(event.scope, attempt), None)


def _item_failed(state: RunState, event: ev.ItemFailed) -> None:
    if event.fresh:
        state.item_failures.setdefault(event.scope, []).append(event.problem)
        return
    attempt = len(state.item_failures.get(event.scope, ())) + 1
    forget_failed(state, item_scope(event.scope, attempt), every=True)


def _logged(state: RunState, event: ev.Logged) -> None:
    # Only digests are kept: a handler that is replayed compares its lines with them, and a run may
    # log ten thousand.
    lines = state.logged.setdefault(event.scope, {})
    key = line_digest(event.text)
    lines[key] = lines.get(key, 0) + 1


# Each function above is named after its event, so an event without one fails as this is imported.
_HOW: dict[str, Callable[[RunState, Any], None]] = {tag: globals()[f"_{tag}"] for tag in ev.KINDS}


def item_scope(scope: str, attempt: int) -> str:
    """Returns the scope of one attempt at a fan-out item."""
    return scope if attempt == 1 else f"{scope}~{attempt}"


def count_time(state: RunState, at: float) -> None:
    """Adds the time at work up to `at`; counting the same moment twice adds nothing."""
    if state.active_since is None:
        return
    took = max(0.0, at - state.active_since)
    state.spend.seconds += took
    state.visit_spend.seconds += took
    state.active_since = at


# The state of a run as JSON, stored now and then so that a resume need not fold every event.


def state_to_json(state: RunState) -> dict[str, Any]:
    """Returns a state as the checkpoint stores it."""
    # The fields as they are, so that a field added to the state is never forgotten here; only what
    # is not plain JSON is converted below.
    data = {f.name: getattr(state, f.name) for f in fields(state)}
    data["limits"] = state.limits.to_json()
    data["spend"] = state.spend.to_json()
    data["visit_spend"] = state.visit_spend.to_json()
    data["ledger"] = [list(entry) for entry in state.ledger.values()]
    data["effects"] = {
        scope: {key: _slots(record) for key, record in records.items()}
        for scope, records in state.effects.items()
    }
    data["pending"] = _slots(state.pending) if state.pending else None
    data["stop_reason"] = state.stop_reason.to_json() if state.stop_reason else None
    return data


def state_from_json(data: dict[str, Any]) -> RunState:
    """Reads a checkpoint back."""
    try:
        return _state(dict(data))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StoreDamaged(f"a stored checkpoint is not readable: {error!r}") from error


def _state(values: dict[str, Any]) -> RunState:
    # `freeze` is deeper than usual here: the checkpoint wraps values that were stored as events.
    values["params"] = freeze(values["params"], CHECKPOINT_DEPTH)
    values["limits"] = Limits.from_json(values["limits"])
    values["spend"] = Spend(**values["spend"])
    values["visit_spend"] = Spend(**values["visit_spend"])
    entries = [LedgerEntry(*entry) for entry in values["ledger"]]
    values["ledger"] = {entry[:3]: entry for entry in entries}
    values["status"] = Status(values["status"])
    values["stage"] = Stage(values["stage"])
    values["state"] = freeze(values["state"], CHECKPOINT_DEPTH)
    if values["outcome"] is not None:
        values["outcome"] = Outcome(values["outcome"])
    values["effects"] = {
        scope: {k: EffectRecord(**{**r, "kind": EffectKind(r["kind"])}) for k, r in records.items()}
        for scope, records in values["effects"].items()
    }
    if values["pending"] is not None:
        pending = dict(values["pending"])
        outcome = pending.pop("outcome")
        values["pending"] = PendingResult(Outcome(outcome) if outcome else None, **pending)
    values["stop_reason"] = reason_from_json(values["stop_reason"])
    return RunState(**values)


def _slots(value: Any) -> dict[str, Any]:
    return {f.name: getattr(value, f.name) for f in fields(value)}


# What one attempt at a step passes on to the next, and what a resume does with its failures.


NO_ANSWER = frozenset({"AgentQuota", "AgentStopped"})
"""Errors that mean "not now": no handler got them, because the run stopped instead."""


def forget_last_command(records: dict[str, EffectRecord]) -> None:
    """Drops a command that failed just before the run did: the user may have fixed the cause.

    Only the last effect of a scope is dropped: the handler has used the result of earlier ones.
    """
    # Dicts keep the order in which effects were started.
    last = next(reversed(records), None)
    if last is None or records[last].kind is not EffectKind.COMMAND or not records[last].done:
        return
    reply = records[last].reply
    if isinstance(reply, dict) and reply.get("code"):
        del records[last]


def forget_failed(state: RunState, scope: str, *, every: bool) -> None:
    """Drops failed effects, so that they are performed again while the others are replayed."""
    records = state.effects.get(scope)
    if records and any(record.error for record in records.values()):
        state.effects[scope] = {
            key: record
            for key, record in records.items()
            if record.error is None or not (every or record.error.get("type") in NO_ANSWER)
        }


def answers_in(state: RunState, scope: str) -> dict[str, str]:
    """Returns the last answer of agents in a scope, by key."""
    prefix = f"{scope}/" if scope else ""
    answers: dict[str, str] = {}
    for identity, record in state.effects.get(scope, {}).items():
        if record.kind is EffectKind.ASK:
            # An answer that did not match its schema is stored with the error.
            text = (record.reply or {}).get("text") or (record.error or {}).get("answer")
            answers[identity.removeprefix(prefix).rpartition("#")[0]] = str(text or "")
    return answers


def next_attempt(state: RunState, feedback: str | None, *, late: bool = False) -> None:
    """Opens another attempt at a step; after a timeout (`late`), finished effects are kept."""
    effects, items = _finished(state) if late else ({}, {})
    own_lines = state.logged.get("", {})
    state.previous_answers = answers_in(state, "")
    state.attempt += 1
    state.feedback = feedback
    state.stage = Stage.WORK
    forget_attempt(state)
    if effects:
        # Effects of the attempt that ran out of time are replayed in this one.
        state.effects, state.items = effects, items
        state.logged = {"": own_lines}
    else:
        state.begun = state.attempt


def _finished(state: RunState) -> tuple[dict[str, dict[str, EffectRecord]], dict[str, Any]]:
    """Returns the finished effects and items of an attempt that ran out of time.

    The next attempt does not pay for them again. Fan-out items are kept or repeated as a whole.
    The fan-out itself is kept to detect a next attempt that has other items.
    """
    own = {
        key: record
        for key, record in state.effects.get("", {}).items()
        if record.kind is EffectKind.MAP or (record.done and _was_seen(key, record))
    }
    # An item inside another item belongs to its parent, which is repeated unless it has finished.
    items = {scope: result for scope, result in state.items.items() if scope.count("[") == 1}
    if not items and not any(record.done for record in own.values()):
        return {}, {}
    return {"": own}, items


def _was_seen(key: str, record: EffectRecord) -> bool:
    """Tells whether the handler got this reply; questions about effects in doubt are no reply."""
    stopped = record.error is not None and record.error.get("type") in NO_ANSWER
    return not stopped and "?" not in key.rpartition("#")[2]


def forget_attempt(state: RunState) -> None:
    """Drops the records of the current attempt."""
    state.pending = None
    state.adopted = False
    state.effects, state.items, state.item_failures, state.forgiven = {}, {}, {}, {}
    state.logged = {}
