"""What identifies a request, even if signoff words it in another way later.

On replay a request has to match what the journal recorded under its key, or the recorded
answer would be used for another question. For a prompt that a user wrote, every character
counts. A prompt that signoff words itself carries its material: the values the prompt is
about. Only the material counts then, so runs in progress survive an upgrade that words prompts
better.
"""

from __future__ import annotations

from signoff.core.digest import digest
from signoff.core.effects import Effect, EffectKind

_WORDING = frozenset({"prompt", "system", "about", "shown", "shared", "text", "workspace"})
"""Where an agent may look things up is no part of the question, like the words that say so."""


def request_digest(effect: Effect) -> str:
    """Returns the digest that identifies a request on replay."""
    if effect.material is None:
        return digest(effect.payload)
    wording = _WORDING | {"schema"} if effect.own_schema else _WORDING
    rest = {name: value for name, value in effect.payload.items() if name not in wording}
    if effect.kind is EffectKind.WAIT and "options" in rest:
        # What an option means may be explained better too; what it is called counts.
        rest["options"] = [{**option, "description": ""} for option in rest["options"]]
    return digest({**rest, "material": effect.material})
