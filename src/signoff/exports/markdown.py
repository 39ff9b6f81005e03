"""A review as Markdown, for a comment on a pull request or the summary of a job."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from signoff.core.outcome import Status
from signoff.core.run_state import RunState
from signoff.core.severity import Severity
from signoff.core.words import CHANGES, FindingStatus
from signoff.documents.control_characters import escape_controls
from signoff.exports.review_record import need_history, rule_id
from signoff.exports.run_record import Export, ExportOptions, RunRecord
from signoff.review.coverage import SHOWN_NAMES, ReviewCoverage, by_reason
from signoff.review.finding import Finding
from signoff.review.history import ReviewHistory, Round, describe_result, describe_status
from signoff.runtime.amounts import count, duration, format_spend
from signoff.runtime.narration import describe_stop
from signoff.runtime.project_files import written_note

MOST_FINDINGS = 50
"""Open findings that are listed; a comment on GitHub may have 65,536 characters."""
LONGEST = 500
"""Characters of a finding or a quote."""
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|>~$])")


def markdown(record: RunRecord, _options: ExportOptions) -> Iterator[str]:
    """Yields the verdict, the rounds, the open and the dismissed findings, and the cost."""
    history = need_history(record, "markdown")
    timeline = record.timeline(whole=False)
    state = timeline.state
    if state.status is not Status.RUNNING:
        timeline.close_bill()
    yield f"## {_verdict(state, history)}\n\n"
    if written := written_note(history.written):
        yield f"Files of the project: {_text(written)}\n\n"
    opened = history.open_findings()
    yield from _findings("Open findings", opened, history)
    dismissed = [each for each in history.findings if each.status is FindingStatus.DISMISSED]
    yield from _findings("Dismissed", dismissed, history)
    if state.status is not Status.RUNNING:
        yield from _coverage(history.coverage)
    yield from _rounds([each for each in history.rounds if each.counts])
    spend = f"{format_spend(timeline.spend)} · {duration(timeline.spend.seconds)} at work"
    yield f"Run {_text(record.name)} of {_text(state.workflow)}: {spend}\n"


EXPORT = Export("markdown", "A summary for a comment on a pull request.", markdown)


def _verdict(state: RunState, history: ReviewHistory) -> str:
    completed = state.status is Status.COMPLETED
    result = _text(describe_result(history, completed=completed))
    heading = f"{result[:1].upper()}{result[1:]}"
    if completed:
        return heading
    how, why = describe_stop(state.status.value.replace("_", " "), state.stop_reason)
    return f"{heading}: {_text(how)}{why and f', {_text(why)}'}"


def _findings(title: str, findings: Sequence[Finding], history: ReviewHistory) -> Iterator[str]:
    if not findings:
        return
    yield f"### {title}: {len(findings)}\n\n"
    for finding in findings[:MOST_FINDINGS]:
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
    if len(findings) > MOST_FINDINGS:
        yield f"- and {len(findings) - MOST_FINDINGS} more\n"
    yield "\n"


def _coverage(coverage: ReviewCoverage) -> Iterator[str]:
    """Yields what was not read, each file that makes the review incomplete by its name."""
    if coverage.missed:
        yield f"### Incomplete, not read: {len(coverage.missed)}\n\n"
        for each in coverage.missed[:MOST_FINDINGS]:
            yield f"- {_code(each.name)}: {_text(each.why)}\n"
        if len(coverage.missed) > MOST_FINDINGS:
            yield f"- and {len(coverage.missed) - MOST_FINDINGS} more\n"
        yield "\n"
    if coverage.left_out:
        yield f"### Left out by rule: {len(coverage.left_out)}\n\n"
        for why, names in by_reason(coverage.left_out).items():
            more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
            yield f"- {_text(why)}: {', '.join(map(_code, names[:SHOWN_NAMES]))}{more}\n"
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


def _text(text: str) -> str:
    """Returns a text that Markdown shows as it is, on one line, and that notifies no user."""
    flat = " ".join(escape_controls(text).split())
    cut = flat if len(flat) <= LONGEST else f"{flat[:LONGEST]}…"
    # A zero-width space keeps `@name` from being a mention.
    marked = _SPECIAL.sub(r"\\\1", cut.replace("&", "&amp;").replace("<", "&lt;"))
    return marked.replace("@", "@\u200b")


def _code(text: str) -> str:
    return f"`{' '.join(escape_controls(text).split()).replace('`', chr(39))}`"
