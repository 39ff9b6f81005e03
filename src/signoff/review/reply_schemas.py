"""The JSON Schemas of critiques and verdicts, for agents that can be held to a schema.

Evidence comes before the severity, and the verdict comes last: a model writes the fields in their
order, and should not commit to a verdict before it has looked.
"""

from __future__ import annotations

from typing import Any

from signoff.review.severity import Severity

_TEXT = {"type": "string"}
_OPTIONAL_TEXT = {"type": ["string", "null"]}


def _object(**fields: Any) -> dict[str, Any]:
    """Returns an object in which every field is required, as strict modes demand."""
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_EDIT = _object(
    kind={"type": "string", "enum": ["replace", "insert_after", "delete"]}, find=_TEXT, text=_TEXT
)
_ISSUE = _object(
    evidence=_TEXT,
    finding=_TEXT,
    impact=_TEXT,
    rule_id=_TEXT,
    severity={"type": "string", "enum": list(Severity)},
    location=_TEXT,
    suggested_fix=_OPTIONAL_TEXT,
    confidence={"type": "number"},
    edit={"anyOf": [_EDIT, {"type": "null"}]},
    id=_TEXT,
)
_DECISION = _object(
    issue_id=_TEXT,
    rationale=_OPTIONAL_TEXT,
    status={"type": "string", "enum": ["pursuing", "dismissed"]},
    competing_constraint=_OPTIONAL_TEXT,
    guidance=_OPTIONAL_TEXT,
)

CRITIQUE_SCHEMA: dict[str, Any] = _object(
    issues=_list(_ISSUE),
    approved_sections=_list(_object(location=_TEXT, note=_TEXT)),
    summary=_TEXT,
    overall={"type": "string", "enum": ["PASS", "FAIL"]},
)
ADJUDICATION_SCHEMA: dict[str, Any] = _object(
    decisions=_list(_DECISION),
    bill_of_work=_TEXT,
    status={"type": "string", "enum": ["APPROVED", "REWRITE"]},
)
