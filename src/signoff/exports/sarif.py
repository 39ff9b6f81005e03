"""A review as SARIF 2.1.0, which GitHub, GitLab, reviewdog and most editors read.

Findings that are fixed are left out: a result that is missing from the next upload closes its
alert, and readers that don't know `baselineState` would show a fixed one as open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from signoff._version import __version__
from signoff.core.outcome import Status
from signoff.core.severity import Severity
from signoff.core.words import FindingStatus
from signoff.documents.control_characters import CONTROL, escape_controls, json_text
from signoff.exports.run_record import (
    Export,
    ExportOptions,
    RunRecord,
    level_of,
    need_history,
    rule_id,
)
from signoff.review.coverage import ReviewCoverage
from signoff.review.finding import Finding
from signoff.review.history import ReviewHistory
from signoff.review.work_order import EditKind, find_passage
from signoff.runtime.amounts import timestamp

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
ROOT = "SRCROOT"
"""The base of all paths: the folder that the run was started in."""
FINGERPRINT = "signoffFinding/v1"
"""The fingerprint is a finding's identity, which lasts across rounds and runs."""
_FIXED = (FindingStatus.FIXED, FindingStatus.ADDRESSED)
_CUT_OFF = (Status.FAILED, Status.INTERRUPTED)
INFORMATION = "urn:signoff:review"
"""Readers want an address for the tool. It has none of its own, and a name is no false link."""


def sarif(record: RunRecord, _options: ExportOptions) -> Iterator[str]:
    """Yields a SARIF log with one run."""
    history = need_history(record, "sarif")
    # Long texts are not loaded: a log needs places and sentences, and must work if a text is lost.
    state = record.timeline(whole=False).state
    shown = [each for each in history.findings if each.status not in _FIXED]
    rules = _rules(history, shown)
    indexes = {rule["id"]: number for number, rule in enumerate(rules)}
    workflow = state.workflow or record.workflow
    coverage = history.coverage if state.status is not Status.RUNNING else ReviewCoverage()
    invocation = {
        "executionSuccessful": state.status not in _CUT_OFF and coverage.complete,
        **_notifications(coverage),
        "startTimeUtc": timestamp(state.started_at),
        "endTimeUtc": timestamp(state.updated_at),
    }
    run = {
        "tool": {
            "driver": {
                "name": "signoff",
                "version": __version__,
                "semanticVersion": __version__,
                "informationUri": INFORMATION,
                "rules": rules,
            }
        },
        "automationDetails": {"id": f"signoff/{_plain(workflow)}/"},
        "invocations": [invocation],
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {
            ROOT: {"description": {"text": "The folder that the run was started in."}}
        },
        "results": [_result(history, each, indexes[_plain(rule_id(each))]) for each in shown],
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    yield f"{json_text(document, indent=2)}\n"


EXPORT = Export("sarif", "Findings for GitHub code scanning, reviewdog and editors.", sarif)


def _notifications(coverage: ReviewCoverage) -> dict[str, Any]:
    """Returns what was not read: an error if that makes the review incomplete, else a note."""
    parts = (("error", "Not read", coverage.missed), ("note", "Left out", coverage.left_out))
    found = [
        {"level": level, "message": {"text": _sentence(f"{title}: {each.name} ({each.why})")}}
        for level, title, entries in parts
        for each in entries
    ]
    return {"toolExecutionNotifications": found} if found else {}


def _rules(history: ReviewHistory, findings: list[Finding]) -> list[dict[str, Any]]:
    """Returns every rule that some finding is about, in the order of the findings."""
    rules: dict[str, dict[str, Any]] = {}
    for finding in findings:
        name = _plain(rule_id(finding))
        if name not in rules:
            constraint = history.constraints.get(finding.constraint) or {}
            rules[name] = _rule(name, finding, constraint)
    return list(rules.values())


def _rule(name: str, finding: Finding, constraint: Mapping[str, Any]) -> dict[str, Any]:
    listed = constraint.get("rules") or ()
    rule: Mapping[str, Any] = next((each for each in listed if each.get("id") == finding.rule), {})
    summary = _sentence(str(constraint.get("summary") or finding.constraint))
    text = _sentence(str(rule.get("text") or summary))
    severity = Severity.named(rule.get("default_severity")) or finding.severity
    return {
        "id": name,
        "name": _name(name),
        "shortDescription": {"text": text},
        "fullDescription": {"text": summary},
        "help": {"text": f"{text} {summary}" if text != summary else text},
        "defaultConfiguration": {"level": level_of(severity)},
    }


def _name(name: str) -> str:
    """Returns a rule's name as one word, as readers expect it."""
    words = "".join(sign if sign.isalnum() else " " for sign in name).split()
    return "".join(word[:1].upper() + word[1:] for word in words) or "Rule"


def _result(history: ReviewHistory, finding: Finding, index: int) -> dict[str, Any]:
    issue = history.issues.get(finding.id) or {}
    fix = f" Suggested fix: {finding.suggested_fix}" if finding.suggested_fix else ""
    result: dict[str, Any] = {
        "ruleId": _plain(rule_id(finding)),
        "ruleIndex": index,
        "level": level_of(finding.severity),
        "message": {"text": _sentence(f"{finding.finding}{fix}")},
        **_locations(history, finding),
        "partialFingerprints": {FINGERPRINT: finding.id},
        "baselineState": _baseline(history, finding),
        "properties": {"severity": finding.severity.value, "round": finding.last},
    }
    if (reason := _suppression(history, finding)) is not None:
        result["suppressions"] = [reason]
    if (fixes := _fixes(history, finding, issue.get("edit"))) is not None:
        result["fixes"] = [fixes]
    if isinstance(confidence := issue.get("confidence"), int | float):
        result["rank"] = round(confidence * 100, 1)
    return result


def _locations(history: ReviewHistory, finding: Finding) -> dict[str, Any]:
    if history.file_of(finding) is None:
        return {}
    return {"locations": [{"physicalLocation": _place(history, finding)}]}


def _place(history: ReviewHistory, finding: Finding) -> dict[str, Any]:
    found = history.location(finding)
    place: dict[str, Any] = {"artifactLocation": _file(history, finding.path)}
    if found is None:
        # Something is missing, or the quote is not in the text: it is about the whole file.
        return {**place, "region": {"startLine": 1}}
    region: dict[str, Any] = {"startLine": found.line, "endLine": found.end_line}
    if found.column is not None and found.end_column is not None:
        region |= {"startColumn": found.column, "endColumn": found.end_column}
    return {**place, "region": {**region, "snippet": {"text": escape_controls(finding.quote)}}}


def _file(history: ReviewHistory, path: str) -> dict[str, Any]:
    return {"uri": quote(history.name_of(path), errors="replace"), "uriBaseId": ROOT}


def _baseline(history: ReviewHistory, finding: Finding) -> str:
    """Returns how a finding compares with the round before the last one."""
    latest = max((each.number for each in history.rounds), default=1)
    labels = [label for number, label in finding.history if number == latest]
    is_new = any(label.is_addition for label in labels)
    return "new" if is_new else "unchanged"


def _suppression(history: ReviewHistory, finding: Finding) -> dict[str, Any] | None:
    """Returns why a finding does not count, if someone has decided that."""
    if finding.status is FindingStatus.OPEN:
        return None
    # Readers show who has suppressed an alert and why; without a reason they ask for one again.
    judgment = history.dismissals.get(finding.id)
    reason = finding.reason or finding.decision or "No reason was given."
    by = f" ({judgment.by})" if judgment is not None else ""
    words = f"{finding.became.words}{by}: {reason}"
    return {"kind": "external", "status": "accepted", "justification": escape_controls(words)}


def _fixes(
    history: ReviewHistory, finding: Finding, edit: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """Returns the exact edit that fixes a finding, if its critic knew one that is unambiguous."""
    version = history.reviewed_in(finding.last)
    text = version.files.get(finding.path) if version is not None else None
    if not edit or text is None:
        return None
    # A passage that occurs twice is no place: an editor would apply the fix to the first one, which
    # may be right as it is.
    (start, end), problem = find_passage(text, str(edit.get("find", "")))
    if problem:
        return None
    kind = edit.get("kind")
    start = end if kind == EditKind.INSERT_AFTER else start
    new = "" if kind == EditKind.DELETE else str(edit.get("text", ""))
    if CONTROL.search(new.replace("\r\n", "\n")):
        # What no reader sees must not get into a file, and an escaped text would be another one.
        return None
    replacement = {
        "deletedRegion": _region(text, start, end),
        "insertedContent": {"text": new},
    }
    change = {"artifactLocation": _file(history, finding.path), "replacements": [replacement]}
    return {"description": {"text": "Apply the critic's edit."}, "artifactChanges": [change]}


def _region(text: str, start: int, end: int) -> dict[str, int]:
    """Returns a range of a text in lines and columns, which count code points from 1."""
    line, end_line = text.count("\n", 0, start) + 1, text.count("\n", 0, end) + 1
    column = start - text.rfind("\n", 0, start)
    return {
        "startLine": line,
        "startColumn": column,
        "endLine": end_line,
        "endColumn": end - text.rfind("\n", 0, end),
    }


def _sentence(text: str) -> str:
    words = escape_controls(" ".join(text.split()))
    return words if words.endswith((".", "!", "?")) else f"{words}."


def _plain(text: str) -> str:
    return escape_controls(text)
