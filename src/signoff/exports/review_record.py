"""What the formats of reviews have in common: they need a review, and its findings in an order."""

from __future__ import annotations

from signoff.core.severity import IssueBehavior, Severity
from signoff.errors import UsageError
from signoff.exports.run_record import RunRecord
from signoff.review.finding import Finding
from signoff.review.history import ReviewHistory


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
