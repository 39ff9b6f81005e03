"""JSON Schemas for the structured answers of critics and judges.

The order of the keys is the order in which a model writes: evidence before the finding, reasons
before the verdict, so that a verdict follows from what was written before it. Every key is
required and no other is allowed, which is what vendors' strict modes demand; optional values are
null. The prompt says what each key means, and a schema is paid for like a prompt, so it does not
say it again.
"""

from __future__ import annotations

from typing import Any

from signoff.review.adjudication import Pursuit, Verdict
from signoff.review.critique import Overall
from signoff.review.edit import EditKind
from signoff.review.severity import Severity

_TEXT = {"type": "string"}
_OPTIONAL = {"type": ["string", "null"]}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _one_of(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": [str(value) for value in values]}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_EDIT = _object(kind=_one_of(*EditKind), find=_TEXT, text=_TEXT)

_ISSUE = _object(
    evidence=_TEXT,
    finding=_TEXT,
    impact=_TEXT,
    rule_id=_TEXT,
    severity=_one_of(*Severity),
    location=_TEXT,
    suggested_fix=_OPTIONAL,
    confidence={"type": "number"},
    edit={"anyOf": [_EDIT, {"type": "null"}]},
)


def _critique(issue: dict[str, Any]) -> dict[str, Any]:
    return _object(
        issues=_list(issue),
        approved_sections=_list(_object(location=_TEXT, note=_TEXT)),
        withdrawn=_list(_object(id=_TEXT, reason=_TEXT)),
        summary=_TEXT,
        overall=_one_of(Overall.PASS, Overall.FAIL),
    )


CRITIQUE_SCHEMA = _critique(_ISSUE)
"""What a critic answers: issues first, then the verdict. The engine gives each issue its id."""

FILES_CRITIQUE_SCHEMA = _critique(_object(path=_TEXT, **_ISSUE["properties"]))
"""What a critic of files answers: each issue names its file."""

_DECISION = _object(
    issue_id=_TEXT,
    rationale=_TEXT,
    guidance=_OPTIONAL,
    competing_constraint=_OPTIONAL,
    status=_one_of(*Pursuit),
)

ADJUDICATION_SCHEMA = _object(
    decisions=_list(_DECISION),
    bill_of_work=_TEXT,
    status=_one_of(Verdict.APPROVED, Verdict.REWRITE),
)
"""What a judge answers: decisions and the work order first, then the verdict."""

CONFIRMATION_SCHEMA = _object(reason=_TEXT, confirmed={"type": "boolean"})
"""What the agent answers that confirms a finding: the reason first."""
