"""What one attempt at a step leaves to the next, and what a resume makes of its failures."""

from __future__ import annotations

from typing import Any

from signoff.core.effects import EffectKind
from signoff.core.run_state import EffectRecord, RunState, Stage

NO_ANSWER = frozenset({"AgentQuota", "AgentStopped"})
"""Errors that only say "not now": no handler has seen them, the run rested instead."""


def forget_last_command(known: dict[str, EffectRecord]) -> None:
    """Drops a program that failed just before the run did: what it found wrong may be mended.

    Only the last effect of its scope: on an earlier one its handler has built since.
    """
    last = next(reversed(known), None)
    if last is None or known[last].kind is not EffectKind.COMMAND or not known[last].done:
        return
    reply = known[last].reply
    if isinstance(reply, dict) and reply.get("code"):
        del known[last]


def forget_failed(state: RunState, scope: str, *, every: bool) -> None:
    """Drops failed effects, so that they are performed again while the others are kept."""
    known = state.effects.get(scope)
    if known and any(record.error for record in known.values()):
        state.effects[scope] = {
            key: record
            for key, record in known.items()
            if record.error is None or not (every or record.error.get("type") in NO_ANSWER)
        }


def answers_in(state: RunState, scope: str) -> dict[str, str]:
    """Returns what agents answered in a scope, by key: of each the last answer."""
    prefix = f"{scope}/" if scope else ""
    found: dict[str, str] = {}
    for identity, record in state.effects.get(scope, {}).items():
        if record.kind is EffectKind.ASK:
            # An answer that did not fit its schema is kept with the error.
            text = (record.reply or {}).get("text") or (record.error or {}).get("answer")
            found[identity.removeprefix(prefix).rpartition("#")[0]] = str(text or "")
    return found


def next_attempt(state: RunState, feedback: str | None, *, late: bool = False) -> None:
    """Opens another attempt at a step; after a `late` one, it keeps what that had finished."""
    effects, items = _finished(state) if late else ({}, {})
    state.previous_answers = answers_in(state, "")
    state.attempt += 1
    state.feedback = feedback
    state.stage = Stage.WORK
    forget_attempt(state)
    if effects:
        state.effects, state.items = effects, items
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
        if record.kind is EffectKind.MAP or (record.done and _was_seen(key, record))
    }
    items = {scope: result for scope, result in state.items.items() if scope.count("[") == 1}
    if not items and not any(record.done for record in own.values()):
        return {}, {}
    return {"": own}, items


def _was_seen(key: str, record: EffectRecord) -> bool:
    """Tells whether a handler got this; what people were asked about an effect, the engine did."""
    stopped = record.error is not None and record.error.get("type") in NO_ANSWER
    return not stopped and "?" not in key.rpartition("#")[2]


def forget_attempt(state: RunState) -> None:
    """Drops what was recorded of the current attempt."""
    state.pending = None
    state.adopted = False
    if state.effects:
        state.effects = {}
    if state.items:
        state.items = {}
    if state.item_failures:
        state.item_failures, state.forgiven = {}, {}
