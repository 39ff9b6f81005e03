"""Reads what critics and judges write: tolerant of slips, strict about what would let a fault pass.

Half an answer, two answers, an answer of the wrong shape and one that imitates the format
are all `Unreadable`; what they are meant to be is never guessed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from signoff.agents.lenient_json import NotJson, find_objects, load
from signoff.review.adjudication import Adjudication, AdjudicationDecision, Pursuit, Verdict
from signoff.review.critique import Critique, CritiqueIssue, Overall
from signoff.review.edit import Edit, EditKind
from signoff.review.fields import Fields, Unreadable, clean
from signoff.review.severity import Severity

__all__ = ["MOST_ISSUES", "Unreadable", "parse_adjudication", "parse_critique"]

MOST_ISSUES = 500
"""What one critique keeps, the worst first; whoever reads more than that reads none of it."""
MOST_DECISIONS = 5_000
MOST_SECTIONS = 200
LONGEST_REPLY = 8_000_000
LONGEST_EDIT = 200_000
DEFAULT_CONFIDENCE = 0.9

_ADJUDICATION = re.compile(r"^=== ?ADJUDICATION ?===[ \t\r]*$", re.MULTILINE)
_BILL = re.compile(r"^=== ?BILL_OF_WORK ?===[ \t\r]*$", re.MULTILINE)
_YAML_FIELD = re.compile(
    r"^(?:iteration|status|decisions|tension_analysis|termination|bill_of_work):", re.MULTILINE
)
# Words a decision and a file name can carry; anything else an agent calls an issue is replaced.
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,79}")


def parse_critique(
    text: str,
    *,
    constraint_id: str,
    reviewer: str,
    iteration: int,
    rules: Mapping[str, Severity] | None = None,
) -> Critique:
    """Returns the critique a reply holds; raises `Unreadable` in words for its author.

    Who reviewed what, and when, is what the caller says, never what the reply claims.
    `rules` gives the severity of an issue that names a rule and no severity.
    """
    said = Fields(_sole_object(text), "the answer")
    if "overall" not in said.raw and "issues" not in said.raw:
        raise Unreadable("the JSON object has neither `overall` nor `issues`")
    overall = _overall(said)
    stated = [Fields(each, f"issue {n}") for n, each in enumerate(said.items("issues"), start=1)]
    issues = _numbered([_issue(each, rules or {}) for each in stated], constraint_id)
    return Critique(
        constraint_id=constraint_id,
        reviewer=reviewer,
        iteration=iteration,
        overall=overall,
        issues=_worst(issues),
        approved_sections=_sections(said.raw.get("approved_sections")),
        summary=said.text("summary", most=5_000),
        notes=_left_out(len(issues)),
    )


def parse_adjudication(text: str, *, iteration: int) -> Adjudication:
    """Returns the adjudication a reply holds; raises `Unreadable` in words for its author.

    What the reply says about `termination` is not read: it is counted from the decisions.
    """
    head, bill = _parts(text)
    said = Fields(_mapping(head), "the adjudication")
    stated = said.items("decisions")
    if len(stated) > MOST_DECISIONS:
        raise Unreadable(f"it has {len(stated)} decisions; {MOST_DECISIONS} are the most")
    notes: list[str] = []
    decisions: dict[str, AdjudicationDecision] = {}
    for number, each in enumerate(stated, start=1):
        _decide(decisions, _decision(Fields(each, f"decision {number}"), notes), notes)
    return Adjudication(
        iteration=iteration,
        status=_verdict(said),
        decisions=tuple(decisions.values()),
        tension_analysis=_tensions(said.raw.get("tension_analysis")),
        bill_of_work=said.text("bill_of_work", most=LONGEST_REPLY) if bill is None else clean(bill),
        notes=tuple(notes),
    )


def _sole_object(text: str) -> Mapping[str, Any]:
    found = _objects(text)
    if not found:
        raise Unreadable("there is no JSON object in it" if text.strip() else "it is empty")
    try:
        return dict(load(found[0]))
    except NotJson as error:
        raise Unreadable(f"the JSON object cannot be read: {error}") from error


def _objects(text: str) -> list[str]:
    if len(text) > LONGEST_REPLY:
        raise Unreadable(f"it is longer than {LONGEST_REPLY:,} characters")
    try:
        found = list(find_objects(text))
    except NotJson as error:
        raise Unreadable(f"the JSON object cannot be read: {error}") from error
    if len(found) > 1:
        raise Unreadable(f"it holds {len(found)} JSON objects; write exactly one")
    return found


def _overall(said: Fields) -> Overall:
    name = said.text("overall").upper() or Overall.FAIL
    if name not in (Overall.PASS, Overall.FAIL):
        raise Unreadable(f"`overall` is {name[:40]!r}; it must be PASS or FAIL")
    return Overall(name)


def _issue(said: Fields, rules: Mapping[str, Severity]) -> CritiqueIssue:
    rule = said.text("rule_id", most=200)
    severity = said.text("severity")
    finding = said.text("finding")
    fix = said.text("suggested_fix")
    if not (finding or fix or said.text("evidence")):
        raise Unreadable(f"{said.location} says nothing; give it a `finding`")
    return CritiqueIssue(
        id=said.text("id"),
        rule_id=rule,
        severity=Severity.read(severity) if severity else rules.get(rule, Severity.HIGH),
        location=said.text("location", most=500),
        finding=finding,
        evidence=said.text("evidence"),
        suggested_fix=fix or None,
        confidence=_confidence(said.raw.get("confidence")),
        edit=_edit(said.raw.get("edit")),
    )


def _numbered(issues: list[CritiqueIssue], constraint: str) -> list[CritiqueIssue]:
    """Keeps an id that is one and stands once; every other is made from the constraint."""
    taken = {issue.id for issue in issues if _ID.fullmatch(issue.id)}
    fresh = (f"{constraint}-{n:03}" for n in range(1, 2 * len(issues) + 1))
    unused = (name for name in fresh if name not in taken)
    used: set[str] = set()
    numbered = []
    for issue in issues:
        keeps = issue.id in taken and issue.id not in used
        name = issue.id if keeps else next(unused)
        used.add(name)
        edit = replace(issue.edit, issue=name) if issue.edit else None
        numbered.append(replace(issue, id=name, edit=edit))
    return numbered


def _worst(issues: list[CritiqueIssue]) -> tuple[CritiqueIssue, ...]:
    if len(issues) <= MOST_ISSUES:
        return tuple(issues)
    return tuple(sorted(issues, key=lambda issue: issue.severity.rank)[:MOST_ISSUES])


def _left_out(stated: int) -> tuple[str, ...]:
    if stated <= MOST_ISSUES:
        return ()
    return (f"{stated} issues were stated; the {MOST_ISSUES} worst are kept",)


def _confidence(raw: object) -> float:
    if isinstance(raw, bool) or not isinstance(raw, int | float) or not math.isfinite(raw):
        return DEFAULT_CONFIDENCE
    return float(min(max(raw, 0), 1))


def _edit(raw: object) -> Edit | None:
    """Reads a literal edit; one that is not well-formed is none, and its issue stands without."""
    if not isinstance(raw, Mapping):
        return None
    find, text = raw.get("find"), raw.get("text") or ""
    if not isinstance(find, str) or not isinstance(text, str) or not find:
        return None
    if clean(find) != find or clean(text) != text or len(find) + len(text) > LONGEST_EDIT:
        return None
    kind = re.sub(r"[\s-]+", "_", str(raw.get("kind", EditKind.REPLACE)).strip().lower())
    if kind not in set(EditKind):
        return None
    return Edit(EditKind(kind), find, "" if kind == EditKind.DELETE else text)


def _sections(raw: object) -> tuple[Mapping[str, str], ...]:
    """Reads what was approved in passing; nothing rests on it, so what is odd is left out."""
    if not isinstance(raw, list):
        return ()
    stated = [each if isinstance(each, Mapping) else {"location": each} for each in raw]
    names = ("location", "note")
    return tuple(
        {name: clean(str(each[name]))[:1_000] for name in names if isinstance(each.get(name), str)}
        for each in stated[:MOST_SECTIONS]
    )


def _parts(text: str) -> tuple[str, str | None]:
    """Splits a reply at its markers; None stands for a bill that is not a section of its own."""
    markers = list(_ADJUDICATION.finditer(text))
    if len(markers) > 1:
        raise Unreadable(
            "the line `=== ADJUDICATION ===` stands in it more than once; write it once, and "
            "quote no text that holds it"
        )
    start = markers[0].end() if markers else 0
    bill = _BILL.search(text)
    if bill is None:
        return text[start:], None
    if bill.start() < start:
        raise Unreadable("`=== BILL_OF_WORK ===` stands before `=== ADJUDICATION ===`")
    return text[start : bill.start()], text[bill.end() :].strip("\r\n")


def _mapping(head: str) -> Mapping[str, Any]:
    """Reads a section as JSON, or as YAML where a line begins as one of its fields would."""
    if not _YAML_FIELD.search(head) and _objects(head):
        return _sole_object(head)
    from signoff.review.yaml_reply import read_yaml

    return read_yaml(head)


def _verdict(said: Fields) -> Verdict:
    name = said.text("status").upper() or Verdict.REWRITE
    if name not in (Verdict.APPROVED, Verdict.REWRITE):
        raise Unreadable(f"`status` is {name[:40]!r}; it must be APPROVED or REWRITE")
    return Verdict(name)


def _decision(said: Fields, notes: list[str]) -> AdjudicationDecision:
    issue = said.text("issue_id", most=200)
    if not issue:
        raise Unreadable(f"{said.location} names no issue; give it an `issue_id`")
    status = said.text("status").lower() or Pursuit.PURSUING
    if status not in set(Pursuit):
        notes.append(f"{issue}: {status[:40]!r} is no decision; taken as pursuing")
        status = Pursuit.PURSUING
    return AdjudicationDecision(
        issue_id=issue,
        constraint=said.text("constraint", most=200),
        severity=Severity.read(said.text("severity")),
        status=Pursuit(status),
        flagged_by=tuple(said.texts("flagged_by")),
        competing_constraint=said.text("competing_constraint", most=200) or None,
        adjudication=said.text("adjudication") or None,
        rationale=said.text("rationale") or None,
        guidance=said.text("guidance") or None,
    )


def _decide(
    decisions: dict[str, AdjudicationDecision], new: AdjudicationDecision, notes: list[str]
) -> None:
    """Adds a decision; where two about one issue disagree, the one that pursues it stands."""
    old = decisions.get(new.issue_id)
    if old is None:
        decisions[new.issue_id] = new
        return
    if old.status is not new.status:
        notes.append(f"{new.issue_id}: decided both ways; taken as pursuing")
        decisions[new.issue_id] = old if old.status is Pursuit.PURSUING else new


def _tensions(raw: object) -> tuple[Mapping[str, str], ...]:
    """Reads the judge's thoughts on tensions; nothing rests on them, so what is odd is left out."""
    if not isinstance(raw, list):
        return ()
    return tuple(
        {str(key): clean(value)[:2_000] for key, value in each.items() if isinstance(value, str)}
        for each in raw[:MOST_SECTIONS]
        if isinstance(each, Mapping)
    )
