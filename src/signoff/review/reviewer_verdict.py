"""Reads what one reviewer of a short text decided: by an object, or by the phrase.

An object is asked for from agents that can be held to a schema. A text in its place is read by
the phrase: the reviewer has done its work, so it is not asked and paid for again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from signoff.core.effects import Reply
from signoff.documents.lenient_json import NotJson, load, strip_code_fence
from signoff.review.approval_phrase import is_approved
from signoff.review.critique import Overall
from signoff.review.parsing import parse_critique
from signoff.review.reply_text import Material

BEST_SCORE = 10

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "feedback": {
            "type": "string",
            "description": "What has to change; empty if nothing has to.",
        },
        "score": {"type": "number", "description": f"From 0 to {BEST_SCORE}, the best."},
        "approved": {
            "type": "boolean",
            "description": "Whether the text is ready as it is; false if there is any feedback.",
        },
    },
    "required": ["feedback", "score", "approved"],
    "additionalProperties": False,
}
"""The feedback comes first, so that a model decides after it has looked."""

NO_FEEDBACK = "The reviewer asks for changes without giving a reason."

_NOTHING = frozenset(
    {"", "-", "n/a", "na", "none", "null", "nothing", "no feedback", "no changes", "no change"}
    | {"no changes needed", "nothing to change", "no objections", "no issues", "empty"}
)


@dataclass(frozen=True)
class ReviewerVerdict:
    """What one reviewer decided."""

    approved: bool
    feedback: str = ""
    """What has to change; empty if it approved."""
    score: float | None = None
    """From 0 to 10; None if the reviewer gave none."""


def read_verdict(reply: Reply, *, strict: bool = False, material: str = "") -> ReviewerVerdict:
    """Returns what a reply decides; `material` is what was reviewed.

    An object that approves and has objections does not approve.
    """
    stated = _object(reply)
    if stated is None:
        return verdict_of_text(reply.text, strict=strict, material=material)
    objections = str(stated.get("feedback") or "").strip()
    if objections.strip(" .!").casefold() in _NOTHING or is_approved(objections, strict=True):
        objections = ""
    score = _score(stated.get("score"))
    if stated["approved"] and not objections and not Material(material).contains(reply.text):
        return ReviewerVerdict(True, score=score)
    return ReviewerVerdict(False, objections or NO_FEEDBACK, score)


def verdict_of_text(text: str, *, strict: bool = False, material: str = "") -> ReviewerVerdict:
    """Returns what a text decides by the phrase."""
    if is_approved(text, strict, material=material):
        return ReviewerVerdict(True)
    return ReviewerVerdict(False, text.strip() or NO_FEEDBACK)


def verdict_of_critique(reply: Reply, reviewer: str) -> ReviewerVerdict:
    """Returns what a check decides: its critique lists everything that is wrong."""
    critique = parse_critique(reply, constraint_id=reviewer, reviewer=reviewer, iteration=1)
    if critique.overall is Overall.PASS and not critique.issues:
        return ReviewerVerdict(True)
    findings = [
        " ".join(filter(None, (each.finding, each.suggested_fix))) for each in critique.issues
    ]
    return ReviewerVerdict(False, "\n".join(findings) or critique.summary or NO_FEEDBACK)


def _object(reply: Reply) -> Mapping[str, Any] | None:
    """Returns the object that a reply is, if it has a verdict."""
    value = reply.value
    if value is None and reply.text.lstrip().startswith(("{", "`")):
        try:
            value = load(strip_code_fence(reply.text))
        except NotJson:
            return None
    has_verdict = isinstance(value, Mapping) and isinstance(value.get("approved"), bool)
    return value if has_verdict else None


def _score(raw: object) -> float | None:
    try:
        number = float(str(raw))
    except ValueError:
        return None
    return None if math.isnan(number) else min(max(number, 0.0), float(BEST_SCORE))
