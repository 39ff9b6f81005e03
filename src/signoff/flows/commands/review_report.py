"""Prints what a review found: `file:line: severity rule: message`, with the quote below it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from signoff.cli import exits
from signoff.core.outcome import Status
from signoff.core.severity import Severity
from signoff.errors import WriteFailed
from signoff.flows.files.patch import unified_diff
from signoff.flows.files.write_back import changed_files
from signoff.flows.state import FlowState
from signoff.review.artifact import locate_finding
from signoff.runtime.amounts import count
from signoff.runtime.project_files import replace_files

if TYPE_CHECKING:
    from signoff.app.project import Project
    from signoff.cli.output import Output
    from signoff.review.findings import Finding

_FINISHED = frozenset({Status.COMPLETED, Status.FINDINGS, Status.LIMIT, Status.NOT_CONVERGING})
"""Statuses of a review that has read everything."""


def print_review(
    project: Project, name: str, *, out: Output, patch: Path | None = None, write: bool = False
) -> int:
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
    before = details.timeline.state.params.get("files", {})
    diff = unified_diff(before, view.files)
    if patch is not None:
        _write_patch(patch, diff)
    written = _write(project, state, before, view.files) if write else {}
    if written.get("conflicts"):
        code = exits.ERROR
    if out.as_json:
        listed = [finding_to_json(view, each) for each in findings]
        facts = {"open": listed, "files": sorted(view.files), "skipped": state.get("skipped", {})}
        facts |= {"diff": diff, **written} if diff else {}
        out.json({**report_to_json(details), "review": facts, "exit_code": code})
        return code
    if diff:
        out.line(diff)
    for finding in findings:
        out.line(finding_line(view, finding), style="red" if finding.severity in blocking else "")
        if not finding.omission:
            out.line(f"    > {' '.join(finding.quote.split())[:200]}")
    out.line(_summary(view, findings, blocking))
    _print_fixes(diff, written, patch, out)
    out.line(f"details: signoff show {name}")
    return code


def _write(
    project: Project, state: Mapping[str, Any], before: Mapping[str, str], after: Mapping[str, str]
) -> dict[str, list[str]]:
    """Returns what became of the files; those of a run without approval are written here."""
    if "written" in state:
        return dict(state["written"])
    return replace_files(project.home.root, *changed_files(before, after))


def _write_patch(path: Path, diff: str) -> None:
    try:
        path.write_text(diff, "utf-8", newline="")
    except OSError as error:
        raise WriteFailed(f"cannot write {path}: {error.strerror or error}") from error


def _print_fixes(
    diff: str, written: Mapping[str, list[str]], patch: Path | None, out: Output
) -> None:
    for path in written.get("conflicts", ()):
        out.warn(f"{path} was changed during the review; no file was written")
    if written.get("written"):
        out.line(f"wrote {', '.join(written['written'])}")
    elif diff and patch is None:
        out.line("no file was changed; --write applies fixes, --patch FILE keeps them")
    if patch is not None and diff:
        out.line(f"the fixes are in {patch}")


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
