"""Decides whether a replayed request is the recorded one, even if signoff has reworded it.

On replay a request has to match what the journal recorded under its key, or the recorded
answer would be used for another question. For a prompt that a user wrote, every character
counts. A prompt that signoff words itself carries its material: the values the prompt is
about. Only the material counts then, so runs in progress survive an upgrade that words prompts
better.

Versions before that recorded the digest of the whole request for both kinds of prompt. Such a
record is accepted when everything but the wording is unchanged: that rest is the request's
shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.core.digest import digest
from signoff.core.effects import Effect, EffectId
from signoff.core.run_state import EffectRecord, RunState

MATERIAL = "material:"
"""Prefix of the digest of a request that is identified by its material."""

_WORDING = frozenset({"prompt", "system", "about", "shown", "shared", "text", "workspace"})
"""Where an agent may look things up is no part of the question, like the words that say so."""
_NOT_SHAPE = _WORDING | {"agent"}


def request_digest(effect: Effect) -> str:
    """Returns the digest that identifies a request on replay."""
    if effect.material is None:
        return digest(effect.payload)
    rest = {name: value for name, value in _payload(effect).items() if name not in _WORDING}
    return MATERIAL + digest({**rest, "material": effect.material})


def _payload(effect: Effect) -> dict[str, Any]:
    """Returns what identifies a request: everything but a schema that signoff wrote."""
    if not effect.own_schema:
        return effect.payload
    return {name: value for name, value in effect.payload.items() if name != "schema"}


def _without_descriptions(effect: Effect) -> Effect:
    options = [
        {name: value for name, value in option.items() if name != "description"}
        for option in effect.payload.get("options") or ()
    ]
    return effect._replace(payload={**effect.payload, "options": options}) if options else effect


def without_wording(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a request without its texts and without the agent; its digest is the shape."""
    return {name: value for name, value in payload.items() if name not in _NOT_SHAPE}


def recorded_shape(record: EffectRecord) -> str:
    """Returns the shape of a recorded request; empty if an older version stored none."""
    if record.shape or record.request is None:
        return record.shape
    return digest(record.request)


def replay_digest(
    state: RunState, identity: EffectId, effect: Effect, roles: Mapping[str, str]
) -> str:
    """Returns the digest to look a request up by: the recorded one if it is the same request."""
    expected = request_digest(effect)
    if effect.material is None:
        return expected
    record = state.effect(identity)
    if record is None or record.digest == expected:
        return expected
    if record.digest.startswith(MATERIAL):
        # Versions before this one asked some questions without describing their options.
        plain = request_digest(_without_descriptions(effect))
        return plain if record.digest == plain else expected
    if record.digest == digest(effect.payload):
        return record.digest
    # From here on the wording differs from a record of an older version. After a changed
    # definition or in an attempt with new feedback, the difference may be the user's.
    if state.adopted or state.late or record.kind is not effect.kind:
        return expected
    # The journal has the agent that was called: a role's, or one that another was replaced by.
    agents = (effect.payload.get("agent", ""), *state.stand_ins.values(), *roles.values())
    if record.agent not in agents:
        return expected
    # A checkpoint written by an older version has no shape to compare.
    same_shape = recorded_shape(record) in ("", digest(without_wording(_payload(effect))))
    return record.digest if same_shape else expected
