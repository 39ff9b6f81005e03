"""The answer of the agent that confirms a finding before it blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from signoff.core.effects import Reply
from signoff.review.own_words import Material
from signoff.review.record import Record
from signoff.review.reply_text import ReplyFormat, Unreadable, clean, find_answer

LONGEST_REASON = 1_000

_FORMAT = ReplyFormat("confirmed", "confirmed", entry="", texts={"": ("reason",)})


@dataclass(frozen=True)
class Confirmation(Record):
    """Whether a finding is true, and why."""

    confirmed: bool
    reason: str = ""


def parse_confirmation(reply: Reply, material: Material) -> Confirmation:
    """Returns the confirmation in a reply; raises `Unreadable` with a message to its author."""
    answer: Mapping[Any, Any] = (
        reply.value
        if isinstance(reply.value, Mapping)
        else find_answer(reply.text, material, _FORMAT)
    )
    confirmed = answer.get("confirmed")
    if not isinstance(confirmed, bool):
        raise Unreadable("`confirmed` must be true or false")
    return Confirmation(confirmed, clean(str(answer.get("reason") or ""))[:LONGEST_REASON])
