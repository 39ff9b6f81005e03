"""Which recorded effect a request is the same as, whatever words signoff puts it in.

A handler written by a user is held to every word of its prompts. A prompt that signoff words
itself is held to its material, so that an upgrade strands no run under way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.core.digest import digest
from signoff.core.effects import Effect, EffectId
from signoff.core.run_state import RunState

MATERIAL = "material:"
"""Begins the digest of a request that is known by its material."""

_WORDING = frozenset({"prompt", "system", "about", "shown"})


def request_digest(effect: Effect) -> str:
    """Returns what an effect is recognized by on replay."""
    if effect.material is None:
        return digest(effect.payload)
    rest = {name: value for name, value in effect.payload.items() if name not in _WORDING}
    return MATERIAL + digest({**rest, "material": effect.material})


def shape_of(payload: Mapping[str, Any]) -> str:
    """Returns the digest of everything in a request but its words and who is asked."""
    hidden = _WORDING | {"agent"}
    return digest({name: value for name, value in payload.items() if name not in hidden})


def recognized_by(
    state: RunState, identity: EffectId, effect: Effect, roles: Mapping[str, str]
) -> str:
    """Returns the digest an effect has in the journal, or will have.

    Older versions took the digest of all words, whoever worded them, and signoff's may have
    changed since. Where everything else is the same, what they recorded is still the answer.
    """
    shown, record = request_digest(effect), state.effect(identity)
    if record is None or effect.material is None or record.digest.startswith(MATERIAL):
        return shown
    if record.digest == digest(effect.payload):
        return record.digest
    # With another definition or new feedback, it may be about something else.
    same = not state.adopted and not state.late and record.kind is effect.kind
    # A checkpoint of an older version has no shape.
    same = same and record.shape in ("", shape_of(effect.payload))
    # Recorded is who was asked in the end: a role's agent, or one that stood in.
    agents = (effect.payload.get("agent", ""), *state.stand_ins.values(), *roles.values())
    return record.digest if same and record.agent in agents else shown
