"""JSON Schemas for the structured answers of critics and judges.

The order of the keys is the order in which a model writes: evidence before the finding, reasons
before the verdict, so that a verdict follows from what was written before it. Every key is
required and no other is allowed, which is what vendors' strict modes demand; optional values are
null.
"""

from __future__ import annotations

from typing import Any

from signoff.review.adjudication import Pursuit, Verdict
from signoff.review.critique import OMISSION, Overall
from signoff.review.edit import EditKind
from signoff.review.severity import Severity


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _optional(description: str) -> dict[str, Any]:
    return {"type": ["string", "null"], "description": description}


def _one_of(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": [str(value) for value in values]}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_EDIT = _object(
    kind=_one_of(*EditKind),
    find=_text("text that occurs exactly once in the artifact"),
    text=_text("the new text; empty for a deletion"),
)

_ISSUE = _object(
    evidence=_text(f"the passage, word for word, or {OMISSION} if something is missing"),
    finding=_text("what is wrong, in one or two sentences"),
    impact=_text("what goes wrong if it stays"),
    rule_id=_text("the rule that is violated"),
    severity=_one_of(*Severity),
    location=_text("where in the artifact"),
    suggested_fix=_optional("how to fix it"),
    confidence={"type": "number", "description": "from 0 to 1"},
    edit={"anyOf": [_EDIT, {"type": "null"}]},
    id=_text("the constraint's id and a number, such as tone-001"),
)

CRITIQUE_SCHEMA = _object(
    issues=_list(_ISSUE),
    approved_sections=_list(
        _object(location=_text("where in the artifact"), note=_text("what is right about it"))
    ),
    summary=_text("one or two sentences"),
    overall=_one_of(Overall.PASS, Overall.FAIL),
)
"""What a critic answers: issues first, then the verdict."""

_DECISION = _object(
    issue_id=_text("the id as given"),
    rationale=_text("why it is pursued or dismissed"),
    guidance=_optional("how to fix it"),
    competing_constraint=_optional("the constraint it conflicts with"),
    status=_one_of(*Pursuit),
)

ADJUDICATION_SCHEMA = _object(
    decisions=_list(_DECISION),
    bill_of_work=_text("the work order in Markdown; empty if nothing has to change"),
    status=_one_of(Verdict.APPROVED, Verdict.REWRITE),
)
"""What a judge answers: decisions and the work order first, then the verdict."""
