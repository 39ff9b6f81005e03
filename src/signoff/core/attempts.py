"""What one attempt at a step passes on to the next, and what a resume does with its failures."""

from __future__ import annotations

from typing import Any

from signoff.core.effects import EffectKind
from signoff.core.run_state import EffectRecord, RunState, Stage

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
