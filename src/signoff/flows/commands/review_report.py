"""Prints what a review found: `file:line: severity rule: message`, with the quote below it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from signoff.cli import exits
from signoff.core.outcome import Status
from signoff.core.severity import Severity
from signoff.flows.state import FlowState
from signoff.review.artifact import locate_finding
from signoff.runtime.amounts import count

if TYPE_CHECKING:
    from signoff.app.project import Project
    from signoff.cli.output import Output
    from signoff.review.findings import Finding

_FINISHED = frozenset({Status.COMPLETED, Status.FINDINGS, Status.LIMIT, Status.NOT_CONVERGING})
"""Statuses of a review that has read everything."""


def print_review(project: Project, name: str, *, out: Output) -> int:
    """Prints the open findings of a review and how it ended; returns the exit code."""
    from signoff.app.show import show
    from signoff.cli.driving import finish
    from signoff.cli.summary import report_to_json

    details = show(project, name)
    if details.row.status not in _FINISHED:
        return finish(details, out)
    state = details.state
    view = FlowState(state)
    findings = view.ledger.open()
    blocking = set(_block_on(project, name))
    code = exits.FINDINGS if any(f.severity in blocking for f in findings) else exits.OK
    if out.as_json:
        listed = [finding_to_json(view, each) for each in findings]
        facts = {"open": listed, "files": sorted(view.files), "skipped": state.get("skipped", {})}
        out.json({**report_to_json(details), "review": facts, "exit_code": code})
        return code
    for finding in findings:
        out.line(finding_line(view, finding), style="red" if finding.severity in blocking else "")
        if not finding.omission:
            out.line(f"    > {' '.join(finding.quote.split())[:200]}")
    out.line(_summary(view, findings, blocking))
    out.line(f"details: signoff show {name}")
    return code


def finding_line(view: FlowState, finding: Finding) -> str:
    """Returns a finding on one line, in the form that editors and CI systems recognize."""
    where = locate_finding(view.content, finding)
    place = f"{where.path}:{where.line}" if where is not None else finding.path or "-"
    rule = f"{finding.constraint}/{finding.rule}"
    if finding.rule in ("", finding.constraint):
        rule = finding.constraint
    doubt = " (unverified)" if finding.unverified else ""
    text = " ".join(finding.finding.split())
    return f"{place}: {finding.severity.value} {rule}: {text}{doubt} [{finding.id}]"


def finding_to_json(view: FlowState, finding: Finding) -> dict[str, Any]:
    """Returns a finding for programs, with its place."""
    where = locate_finding(view.content, finding)
    place = {"line": where.line, "end_line": where.end_line} if where is not None else {}
    return {**finding.to_json(), "path": finding.path, **place}


def _block_on(project: Project, name: str) -> tuple[Severity, ...]:
    handler = next(
        iter(project.find_again(project.store.row(name)).workflow.steps.values())
    ).handler
    block_on: tuple[Severity, ...] = handler.flow.config.adjudication.block_on  # type: ignore[union-attr]
    return block_on


def _summary(view: FlowState, findings: list[Finding], blocking: set[Severity]) -> str:
    files = count(len(view.files), "file")
    if not findings:
        return f"no findings in {files}"
    block = sum(each.severity in blocking for each in findings)
    return f"{count(len(findings), 'finding')} in {files}, {block or 'none'} blocking"
