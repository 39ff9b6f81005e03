"""Reviews for other tools: SARIF 2.1.0, annotations of GitHub Actions, and Markdown.

SARIF is read by GitHub, GitLab, reviewdog and most editors. Findings that are fixed are left out
of it: a result that is missing from the next upload closes its alert, and readers that don't know
`baselineState` would show a fixed one as open. Markdown is for a comment on a pull request or the
summary of a job.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from signoff._version import __version__
from signoff.core.amounts import count, duration, format_spend, timestamp
from signoff.core.errors import UsageError
from signoff.core.one_line import one_line
from signoff.core.outcome import Status
from signoff.core.run_state import RunState
from signoff.core.severity import IssueBehavior, Severity
from signoff.core.stop_reason import describe_stop
from signoff.core.words import CHANGES, FindingStatus
from signoff.documents.control_characters import CONTROL, escape_controls, json_text
from signoff.review.pure.coverage import ConstraintResult, ReviewCoverage, describe_missed
from signoff.review.pure.finding import Finding, describe_equal, group_equal
from signoff.review.pure.history import ReviewHistory, Round, describe_result, describe_status
from signoff.review.pure.work_order import EditKind, find_passage
from signoff.runtime.project_files import written_note
from signoff.views.exports.run_record import Export, ExportOptions, RunRecord

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


SARIF = Export("sarif", "Findings for GitHub code scanning, reviewdog and editors.", sarif)


def _notifications(coverage: ReviewCoverage) -> dict[str, Any]:
    """Returns what was not read: an error if that makes the review incomplete, else a note."""
    parts = (("error", "Not read", coverage.missed), ("note", "Left out", coverage.left_out))
    found = [
        {"level": level, "message": {"text": _sentence(f"{title}: {each.path} ({each.reason})")}}
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


# Open findings as workflow commands, which become annotations of a change.

COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def github(record: RunRecord, _options: ExportOptions) -> Iterator[str]:
    """Yields a line for each open finding, what blocks first: GitHub shows the first ten."""
    history = need_history(record, "github")
    for finding in history.open_findings():
        yield _annotation(history, finding)
    if record.timeline(whole=False).state.status is not Status.RUNNING:
        for line in describe_missed(history.coverage.missed):
            yield f"::error title=Review incomplete::{_message(line)}\n"


GITHUB = Export("github", "Open findings as annotations of GitHub Actions.", github)


def _annotation(history: ReviewHistory, finding: Finding) -> str:
    found = history.location(finding)
    file = history.file_of(finding)
    place: dict[str, object] = {"file": file} if file is not None else {}
    if found is not None:
        place |= {"line": found.line, "endLine": found.end_line}
        # Columns of a passage with several lines are refused.
        if found.column is not None and found.line == found.end_line:
            place |= {"col": found.column, "endColumn": found.end_column}
    place["title"] = f"{finding.severity.value} {rule_id(finding)}"
    fix = f"\nSuggested fix: {finding.suggested_fix}" if finding.suggested_fix else ""
    values = ",".join(f"{name}={_property(value)}" for name, value in place.items())
    command = COMMANDS[level_of(finding.severity)]
    return f"::{command} {values}::{_message(f'{finding.finding}{fix}')}\n"


def _message(text: object) -> str:
    # A line break would end the command, and the rest of the text could begin another one.
    escaped = escape_controls(str(text).replace("%", "%25").replace("\r", "%0D"))
    return escaped.replace("\n", "%0A")


def _property(value: object) -> str:
    return _message(value).replace(":", "%3A").replace(",", "%2C")


# A summary for a comment on a pull request.

MOST_FINDINGS = 50
"""Open findings that are listed; a comment on GitHub may have 65,536 characters."""
LONGEST, LONGEST_LIST = 500, 10_000
"""Characters of a finding or a quote, and of a list of names."""
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|>~$])")


def markdown(record: RunRecord, _options: ExportOptions) -> Iterator[str]:
    """Yields the verdict, the rounds, the open and the dismissed findings, and the cost."""
    history = need_history(record, "markdown")
    timeline = record.timeline(whole=False)
    state = timeline.state
    # A call that never ended may have been paid for, so a run at rest shows it as unknown cost.
    if state.status is not Status.RUNNING:
        timeline.close_bill()
    # The comment keeps reviews of the folder it is written to from reviewing it.
    yield "<!-- Generated by signoff. Do not edit. -->\n\n"
    yield f"## {_verdict(state, history)}\n\n"
    if written := written_note(history.written):
        yield f"Files of the project: {_text(written)}\n\n"
    opened = history.open_findings()
    yield from _findings("Open findings", opened, history)
    dismissed = [each for each in history.findings if each.status is FindingStatus.DISMISSED]
    yield from _findings("Dismissed", history.listed(dismissed), history)
    if state.status is not Status.RUNNING:
        yield from _constraints(history.read_by)
        yield from _coverage(history.coverage)
    yield from _rounds([each for each in history.rounds if each.counts])
    spend = f"{format_spend(timeline.spend)} · {duration(timeline.spend.seconds)} at work"
    yield f"Run {_text(record.name)} of {_text(state.workflow)}: {spend}\n"


MARKDOWN = Export("markdown", "A summary for a comment on a pull request.", markdown)


def _verdict(state: RunState, history: ReviewHistory) -> str:
    completed = state.status is Status.COMPLETED
    result = _text(describe_result(history, completed=completed))
    heading = f"{result[:1].upper()}{result[1:]}"
    if completed:
        return heading
    # A review that was cut off must never read like one that passed.
    how, why = describe_stop(state.status.value.replace("_", " "), state.stop_reason)
    return f"{heading}: {_text(how)}{why and f', {_text(why)}'}"


def _findings(title: str, findings: Sequence[Finding], history: ReviewHistory) -> Iterator[str]:
    if not findings:
        return
    yield f"### {title}: {len(findings)}\n\n"
    groups = group_equal(findings)
    for group in groups[:MOST_FINDINGS]:
        finding = group[0]
        place = f"{_code(history.place(finding))} " if finding.path or not finding.omission else ""
        yield f"- **{finding.severity.value}** {place}{_text(rule_id(finding))}: "
        yield f"{_text(finding.finding)}\n"
        if not finding.omission:
            yield f"  > {_text(finding.quote)}\n"
        if finding.suggested_fix:
            yield f"  Suggested fix: {_text(finding.suggested_fix)}\n"
        if finding.status is FindingStatus.DISMISSED:
            reason = finding.reason or "no reason given"
            yield f"  {_text(describe_status(finding))}: {_text(reason)}\n"
        if len(group) > 1:
            yield f"  {_text(describe_equal(group))}\n"
    if left := sum(map(len, groups[MOST_FINDINGS:])):
        yield f"- and {left:,} more\n"
    yield "\n"


def _constraints(results: Sequence[ConstraintResult]) -> Iterator[str]:
    """Yields who has read the text against each constraint, and with which result."""
    if results:
        yield "### Constraints\n\n"
    for each in results:
        yield f"- {_code(each.constraint)}: {_text(each.words)}\n"
    if results:
        yield "\n"


def _coverage(coverage: ReviewCoverage) -> Iterator[str]:
    """Yields what was not read; what makes the review incomplete comes first."""
    if lines := list(coverage.lines(MOST_FINDINGS)):
        title = "What was not read" if coverage.complete else "Incomplete"
        yield f"### {title}\n\n"
        yield from (f"- {_text(line, LONGEST_LIST)}\n" for line in lines)
        yield "\n"


def _rounds(rounds: Sequence[Round]) -> Iterator[str]:
    if not rounds:
        return
    names = [severity.value for severity in Severity]
    headings = [label.words.capitalize() for label in CHANGES]
    yield f"| Round | Open | {' | '.join(names)} | {' | '.join(headings)} |\n"
    yield f"| ---: | ---: |{' ---: |' * len(names + headings)}\n"
    for each in rounds:
        numbers = [int(each.counts["open"].get(name, 0)) for name in names]
        changed = [each.counts.get(label) or 0 for label in CHANGES]
        cells = [each.number, sum(numbers), *numbers, *changed]
        yield f"| {' | '.join(map(str, cells))} |\n"
    yield f"\n{count(len(rounds), 'round')}. "


def _text(text: str, longest: int = LONGEST) -> str:
    """Returns a text that Markdown shows as it is, on one line, and that notifies no user."""
    cut = one_line(escape_controls(text), longest)
    # A zero-width space keeps `@name` from being a mention.
    marked = _SPECIAL.sub(r"\\\1", cut.replace("&", "&amp;").replace("<", "&lt;"))
    return marked.replace("@", "@\u200b")


def _code(text: str) -> str:
    return f"`{' '.join(escape_controls(text).split()).replace('`', chr(39))}`"


# What the formats have in common: they need a review, and the names and weights of its findings.


def need_history(record: RunRecord, format_name: str) -> ReviewHistory:
    """Returns the review of a run; raises `UsageError` if it has none."""
    history = record.review()
    if history is None:
        raise UsageError(
            f"run {record.name!r} has no review to export as {format_name}: "
            f"its workflow {record.workflow!r} is not a review flow"
        )
    return history


def rule_id(finding: Finding) -> str:
    """Returns the name of the rule that a finding is about."""
    return f"{finding.constraint}/{finding.rule}" if finding.rule else finding.constraint


def level_of(severity: Severity) -> str:
    """Returns the level of a severity in SARIF and on GitHub, by what it leads to."""
    if severity.defaults.blocks:
        return "error"
    return "note" if severity.defaults.behavior is IssueBehavior.IGNORE else "warning"
