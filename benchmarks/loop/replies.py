"""The replies of simulated critics and judges: as text, or as a value that matches a schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.loop.reading import with_ref
from benchmarks.loop.simulation import BLOCKING, Alarm


def critique(found: Mapping[str, Sequence[Alarm]]) -> dict[str, Any]:
    """Returns a critic's answer about one or several constraints."""
    issues = [
        _issue(constraint, number, each, qualified=len(found) > 1)
        for constraint, alarms in found.items()
        for number, each in enumerate(alarms, start=1)
    ]
    return {
        "issues": issues,
        "approved_sections": [],
        "summary": f"{len(issues)} findings." if issues else "Nothing to report.",
        "overall": "FAIL" if issues else "PASS",
    }


def _issue(constraint: str, number: int, alarm: Alarm, *, qualified: bool) -> dict[str, Any]:
    return {
        "id": f"{constraint}-{number:03}",
        # Each constraint has one rule, which has the same name.
        "rule_id": f"{constraint}/{constraint}" if qualified else constraint,
        "severity": alarm.severity,
        "location": f"passage {number}",
        "finding": with_ref(alarm.finding, alarm.ref),
        "impact": "Readers and users rely on what is wrong.",
        "evidence": alarm.quote,
        "suggested_fix": alarm.fix or "Delete it.",
        "confidence": 0.9,
    }


def verdict(
    decisions: Sequence[tuple[str, Alarm, bool]], edits: Mapping[str, str]
) -> tuple[dict[str, Any], str]:
    """Returns a judge's answer and its work order.

    A decision is an id, an alarm and whether it is pursued. `edits` has the new text of each
    passage that the judge knows how to fix, by ref; the others are described in words.
    """
    pursued = [(name, alarm) for name, alarm, pursue in decisions if pursue]
    blocked = any(alarm.severity in BLOCKING for _name, alarm in pursued)
    answer = {
        "decisions": [_decision(*each) for each in decisions],
        "status": "REWRITE" if blocked else "APPROVED",
    }
    return answer, "\n\n".join(_entry(*each, edits.get(each[1].ref)) for each in pursued)


def _decision(name: str, alarm: Alarm, pursue: bool) -> dict[str, Any]:
    return {
        "issue_id": name,
        "constraint": alarm.constraint,
        "severity": alarm.severity,
        "status": "pursuing" if pursue else "dismissed",
        "flagged_by": ["critic"],
        "competing_constraint": None,
        "rationale": None if pursue else "The passage is fine as it is.",
        "guidance": alarm.finding if pursue else None,
    }


def _entry(name: str, alarm: Alarm, new: str | None) -> str:
    heading = f"### Issue: {name} ({alarm.severity})"
    if new is None:
        return f"{heading}\n\n{with_ref(alarm.finding, alarm.ref)}"
    find = f"Find:\n```\n{alarm.quote}\n```"
    if not new:
        return f"{heading}\n\nDelete\n\n{find}"
    return f"{heading}\n\nReplace\n\n{find}\n\nReplace:\n```\n{new}\n```"


def conform(value: Any, schema: Mapping[str, Any]) -> Any:
    """Returns a value with exactly the keys that a schema asks for, as structured output does."""
    for option in schema.get("anyOf", ()):
        if (option.get("type") == "null") == (value is None):
            return conform(value, option)
    properties = schema.get("properties")
    if properties is not None and isinstance(value, Mapping):
        return {key: conform(value.get(key), part) for key, part in properties.items()}
    if "items" in schema and isinstance(value, list):
        return [conform(each, schema["items"]) for each in value]
    return _empty(schema) if value is None else value


def _empty(schema: Mapping[str, Any]) -> Any:
    kinds = schema.get("type", "string")
    if kinds == "null" or "null" in kinds:
        return None
    kind = kinds if isinstance(kinds, str) else kinds[0]
    if "enum" in schema:
        return schema["enum"][0]
    return {"string": "", "array": [], "number": 0, "integer": 0, "boolean": False}.get(kind, {})


def dumps(value: Any) -> str:
    """Returns a value as the text of a reply."""
    return json.dumps(value, ensure_ascii=False, indent=1)
