"""Says what the options of the engine's own requests do.

They are not stored with a request: it must be the same when a run of an earlier release replays it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from signoff.core.requests import RETRY
from signoff.core.transitions import ACCEPT, CONTINUE, STOP

_ENDS = "The run ends here, without a result."

_BY_EFFECT: Mapping[str, Mapping[str, str]] = {
    "rounds": {CONTINUE: "As many further rounds as before, which cost about as much.",
               STOP: _ENDS},
    "limit": {CONTINUE: "The loop may repeat as often again, which costs about as much.",
              STOP: _ENDS},
    "escalation": {RETRY: "The step runs again and gets your comment.",
                   ACCEPT: "The step's result counts although it breaks a condition.",
                   STOP: _ENDS},
}  # fmt: skip
"""What the engine asks about a step, by the name of its effect."""

_BY_QUESTION: Mapping[str, Mapping[str, str]] = {
    "not_converging": {
        CONTINUE: "Another round tries to fix the open findings.",
        STOP: "The run ends; the best version so far is kept, not approved.",
    },
}
"""What flows ask, by the id of the question."""

_OWN_EFFECT = re.compile(r"!(\w+)#\d+$")
"""Handlers cannot use a key that begins with `!`."""


def described(
    options: Sequence[Mapping[str, Any]], effect: str, question_id: str | None
) -> list[dict[str, Any]]:
    """Returns options with descriptions; those that have one keep it."""
    own = _OWN_EFFECT.search(effect)
    texts = _BY_EFFECT.get(own[1], {}) if own else _BY_QUESTION.get(question_id or "", {})
    return [
        {**each, "description": each.get("description") or texts[each["label"]]}
        if each["label"] in texts
        else dict(each)
        for each in options
    ]
