import json
from typing import Any

import pytest

from signoff.agents.answer import is_strict, schema_problems
from signoff.core.effects import Reply
from signoff.review.adjudication import Verdict
from signoff.review.parsing import parse_adjudication, parse_critique
from signoff.review.prompts import ADJUDICATION_SCHEMA, CRITIQUE_SCHEMA
from signoff.review.work_order import EditKind

ISSUE: dict[str, Any] = {
    "evidence": "cures colds",
    "finding": "It promises a cure.",
    "impact": "Buyers skip a doctor.",
    "rule_id": "claims",
    "severity": "HIGH",
    "location": "line 2",
    "suggested_fix": None,
    "confidence": 0.8,
    "edit": {"kind": "delete", "find": "cures colds", "text": ""},
}
CRITIQUE = {
    "issues": [ISSUE],
    "approved_sections": [],
    "withdrawn": [{"id": "tone-009", "reason": "It was meant so."}],
    "summary": "One promise.",
    "overall": "FAIL",
}
DECISION = {
    "issue_id": "tone-001",
    "rationale": "It is true.",
    "guidance": None,
    "competing_constraint": None,
    "status": "pursuing",
}
ADJUDICATION = {"decisions": [DECISION], "bill_of_work": "Cut it.", "status": "REWRITE"}


@pytest.mark.parametrize("schema", [CRITIQUE_SCHEMA, ADJUDICATION_SCHEMA])
def test_every_schema_can_be_enforced_by_vendors(schema: dict[str, Any]) -> None:
    """OpenAI refuses a request with a schema that its strict mode does not accept."""
    assert is_strict(json.loads(json.dumps(schema)))


def test_reasons_come_before_verdicts() -> None:
    """A model writes in this order, and would otherwise decide before it has looked."""
    issue = list(CRITIQUE_SCHEMA["properties"]["issues"]["items"]["properties"])
    decision = list(ADJUDICATION_SCHEMA["properties"]["decisions"]["items"]["properties"])

    assert issue[:5] == ["evidence", "finding", "impact", "rule_id", "severity"]
    assert decision.index("rationale") < decision.index("status")
    assert list(CRITIQUE_SCHEMA["properties"])[-1] == "overall"
    assert list(ADJUDICATION_SCHEMA["properties"])[-1] == "status"


def test_an_answer_that_matches_its_schema_is_read_completely() -> None:
    """A key that the parser does not know would be asked for and paid for in vain."""
    assert schema_problems(CRITIQUE, CRITIQUE_SCHEMA) == []
    assert schema_problems(ADJUDICATION, ADJUDICATION_SCHEMA) == []

    read = parse_critique(Reply("", CRITIQUE), constraint_id="tone", reviewer="ann", iteration=1)
    judged = parse_adjudication(Reply("", ADJUDICATION), iteration=1)

    (issue,) = read.issues
    assert issue.edit is not None
    assert issue.edit.kind is EditKind.DELETE
    assert {name: issue.to_json()[name] for name in ISSUE if name != "edit"} == {
        name: value for name, value in ISSUE.items() if name != "edit"
    }
    assert [each.to_json() for each in read.withdrawn] == CRITIQUE["withdrawn"]
    assert (judged.status, judged.bill_of_work) == (Verdict.REWRITE, "Cut it.")
    assert judged.decisions[0].rationale == "It is true."
