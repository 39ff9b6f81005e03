"""Open findings as workflow commands of GitHub Actions, which become annotations of a change."""

from __future__ import annotations

from collections.abc import Iterator

from signoff.core.outcome import Status
from signoff.documents.control_characters import escape_controls
from signoff.exports.run_record import (
    Export,
    ExportOptions,
    RunRecord,
    level_of,
    need_history,
    rule_id,
)
from signoff.review.coverage import describe_missed
from signoff.review.finding import Finding
from signoff.review.history import ReviewHistory

COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def github(record: RunRecord, _options: ExportOptions) -> Iterator[str]:
    """Yields a line for each open finding, what blocks first: GitHub shows the first ten."""
    history = need_history(record, "github")
    for finding in history.open_findings():
        yield _annotation(history, finding)
    if record.timeline(whole=False).state.status is not Status.RUNNING:
        for line in describe_missed(history.coverage.missed):
            yield f"::error title=Review incomplete::{_message(line)}\n"


EXPORT = Export("github", "Open findings as annotations of GitHub Actions.", github)


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
