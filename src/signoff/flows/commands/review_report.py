"""Prints what a review found: `file:line: severity rule: message`, with the quote below it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from signoff.cli import exits
from signoff.core.outcome import Status
from signoff.core.words import FindingStatus
from signoff.errors import WriteFailed
from signoff.flows.coverage import run_coverage
from signoff.flows.decision_file import add_decisions
from signoff.flows.files.selection import no_changes_note
from signoff.flows.state import FlowState, blocking_severities
from signoff.flows.steps.decision_material import finding_line
from signoff.flows.steps.ending import changed_files
from signoff.review.artifact import locate_finding, place
from signoff.review.diff import unified_diff
from signoff.review.finding import describe_equal, group_equal
from signoff.review.lasting_decision import BASELINE, LastingDecision
from signoff.runtime.amounts import count
from signoff.runtime.project_files import conflict_text, replace_files

if TYPE_CHECKING:
    from signoff.app.project import Project
    from signoff.app.show import RunDetails
    from signoff.cli.output import Output
    from signoff.core.severity import Severity
    from signoff.flows.files.selection import Selection
    from signoff.review.coverage import ReviewCoverage
    from signoff.review.findings import Finding

_FINISHED = frozenset(
    {Status.COMPLETED, Status.FINDINGS, Status.LIMIT, Status.NOT_CONVERGING, Status.INCOMPLETE}
)
"""Statuses of a review that was not cut off."""
REMEDY = (
    "the review is incomplete: make these files readable and covered by a constraint, or leave "
    "them out (.signoffignore)"
)


@dataclass(frozen=True)
class ReviewReport:
    """What a finished review has to show, and what it does with it."""

    project: Project
    details: RunDetails
    fix: bool = False
    patch: Path | None = None
    write: bool = False
    baseline: bool = False

    @cached_property
    def view(self) -> FlowState:
        """The run's state."""
        return FlowState(self.details.state)

    @cached_property
    def findings(self) -> list[Finding]:
        """The open findings: those that block first, then by file and line."""
        return self.view.ledger.open(self.blocking)

    @cached_property
    def blocking(self) -> frozenset[Severity]:
        """The severities that block."""
        return blocking_severities(self._description)

    @cached_property
    def before(self) -> Mapping[str, str]:
        """The files as they were read."""
        files: Mapping[str, str] = self.details.timeline.state.params.get("files", {})
        return files

    @cached_property
    def diff(self) -> str:
        """What fixes have changed."""
        return unified_diff(self.before, self.view.files)

    @cached_property
    def written(self) -> Mapping[str, list[str]]:
        """What became of the project's files; without a sign-off, they are written here."""
        if not self.write:
            return {}
        if "written" in self.details.state:
            return dict(self.details.state["written"])
        return replace_files(self.project.home.root, *changed_files(self.before, self.view.files))

    @cached_property
    def coverage(self) -> ReviewCoverage:
        """What was not read, and why."""
        return run_coverage(self.details.state, self._description, self.view.files)

    @cached_property
    def _description(self) -> Mapping[str, Any]:
        description: Mapping[str, Any] = json.loads(
            self.project.store.description(self.details.row.id)
        )
        return description

    @property
    def fixed_in_copies(self) -> list[Finding]:
        """The findings that were fixed, but not in the files of the project."""
        if not self.diff or self.written.get("written"):
            return []
        findings = self.view.ledger.findings.values()
        return [each for each in findings if each.status is FindingStatus.FIXED]

    @property
    def code(self) -> int:
        """The exit code."""
        if self.written.get("conflicts"):
            return exits.ERROR
        # A fix that is only in a copy leaves the file as it was found.
        in_files = [*self.findings, *self.fixed_in_copies]
        blocks = any(each.severity in self.blocking for each in in_files)
        if blocks and not self.baseline:
            return exits.FINDINGS
        return exits.OK if self.coverage.complete else exits.INCOMPLETE

    def act(self) -> None:
        """Writes what the user asked for."""
        if self.baseline:
            accept(self.project, self.findings)
        if self.patch is not None:
            _write_patch(self.patch, self.diff)

    def to_json(self) -> dict[str, Any]:
        """Returns it for programs."""
        from signoff.cli.summary import report_to_json

        facts = {
            "open": [finding_to_json(self.view, each) for each in self.findings],
            "rule_decisions": [each.to_json() for each in self.view.rule_decisions],
            "files": sorted(self.view.files),
            "coverage": self.coverage.to_json(),
            **({"diff": self.diff, **self.written} if self.diff else {}),
        }
        return {**report_to_json(self.details), "review": facts, "exit_code": self.code}

    def print(self, out: Output) -> None:
        """Prints it for humans."""
        if self.diff:
            out.line(self.diff)
        for group in group_equal(self.findings):
            finding = group[0]
            style = "red" if finding.severity in self.blocking else ""
            out.line(finding_line(self.view.content, finding), style=style)
            if not finding.omission:
                out.line(f"    > {' '.join(finding.quote.split())[:200]}")
            if len(group) > 1:
                out.prose(f"    {describe_equal(group)}", hang="    ")
        for decision in self.view.rule_decisions:
            out.line(_rule_line(self.view, decision))
        out.line(_summary(self.view, self.findings, self.blocking))
        print_coverage(self.coverage, out)
        self._print_fixes(out)
        if self.baseline and self.findings:
            out.line(f"accepted in {self.project.home.path.name}/decisions.yaml; commit it")
        out.line(f"details: signoff show {self.details.row.name}")

    def _print_fixes(self, out: Output) -> None:
        if self.fix and self.findings and not self.diff and self.code == exits.OK:
            out.line("nothing was fixed: none of the findings blocks")
        if conflicts := self.written.get("conflicts"):
            out.warn(conflict_text(conflicts))
        if self.written.get("written"):
            out.line(f"wrote {', '.join(self.written['written'])}")
        elif self.diff:
            out.line(f"{count(len(self.fixed_in_copies), 'finding')} fixed in copies, not written")
            out.line(self._how_to_apply)

    @property
    def _how_to_apply(self) -> str:
        if self.patch is not None:
            return f"no file was changed; the fixes are in {self.patch}: apply them with git apply"
        if self.write:
            folder = self.details.end.path if self.details.end is not None else "final"
            return f"no file was changed; the fixed files are in {folder} of the run directory"
        return "no file was changed; --write applies fixes, --patch FILE keeps them"


def print_review(project: Project, name: str, *, out: Output, **options: Any) -> int:
    """Prints the open findings of a review and how it ended; returns the exit code."""
    from signoff.app.show import show
    from signoff.cli.driving import finish

    details = show(project, name)
    if details.row.status not in _FINISHED:
        return finish(details, out)
    report = ReviewReport(project, details, **options)
    report.act()
    if out.as_json:
        out.json(report.to_json())
    else:
        report.print(out)
    return report.code


def print_no_changes(selection: Selection, out: Output) -> int:
    """Prints why a change has nothing to review; returns the exit code.

    That is a success, unless a file could not be read.
    """
    coverage = selection.coverage
    code = exits.OK if coverage.complete else exits.INCOMPLETE
    if out.as_json:
        facts = {"open": [], "files": [], "coverage": coverage.to_json()}
        out.json({"review": facts, "exit_code": code})
    else:
        out.line(no_changes_note(selection))
        print_coverage(coverage, out)
    return code


def print_coverage(coverage: ReviewCoverage, out: Output) -> None:
    """Prints what a review has not read, and what to do if that makes it incomplete."""
    for line in coverage.lines():
        out.line(line, style="red" if line.startswith("not read") else "")
    if not coverage.complete:
        out.line(REMEDY, style="red")


def accept(project: Project, findings: Sequence[Finding]) -> None:
    """Records the decision that findings of today do not block later runs."""
    from signoff.app.answering import current_user

    by, on = current_user(), date.today().isoformat()  # noqa: DTZ011  # the user's own calendar
    decisions = [LastingDecision.about_finding(f, BASELINE, by=by, on=on) for f in findings]
    add_decisions(project.home.path, decisions)


def _rule_line(view: FlowState, decision: LastingDecision) -> str:
    """Returns a decision about a whole rule, and how much it covers in this run."""
    covered = sum(decision.covers(f.constraint, f.rule, f.path) for f in _dismissed(view))
    where = f" in {decision.files}" if decision.files else ""
    why = " ".join(decision.why.split())
    name = f"{decision.constraint}/{decision.rule}"
    return f"{name}{where} is dismissed: {count(covered, 'finding')} ({why})"


def _write_patch(path: Path, diff: str) -> None:
    try:
        # Programs that apply a patch skip its first lines, and reviews the file that says so.
        text = f"Generated by signoff. Do not edit.\n{diff}" if diff else diff
        path.write_text(text, "utf-8", newline="")
    except OSError as error:
        raise WriteFailed(f"cannot write {path}: {error.strerror or error}") from error


def finding_to_json(view: FlowState, finding: Finding) -> dict[str, Any]:
    """Returns a finding for programs, with its place."""
    where = locate_finding(view.content, finding)
    place = {"line": where.line, "end_line": where.end_line} if where is not None else {}
    return {**finding.facts(), "path": finding.path, **place}


def _dismissed(view: FlowState) -> list[Finding]:
    """Returns the dismissed findings that the files still have: a fix may have removed some."""
    findings = list(view.ledger.findings.values())
    placed = place(findings, view.content.text)
    return [
        each
        for each in findings
        if each.status is FindingStatus.DISMISSED
        and (each.omission or each.unverified or each.id in placed)
    ]


def _summary(view: FlowState, findings: Sequence[Finding], blocking: Collection[Severity]) -> str:
    files = count(len(view.files), "file")
    every = view.ledger.findings.values()
    dismissed = len(_dismissed(view))
    rest = f", {dismissed:,} dismissed" if dismissed else ""
    if not findings:
        known = any(each.status is not FindingStatus.IGNORED for each in every)
        return f"no open findings in {files}{rest}" if known else f"no findings in {files}"
    block = sum(each.severity in blocking for each in findings)
    blocking_words = f"{block:,} blocking" if block else "none blocking"
    return f"{count(len(findings), 'finding')} in {files}, {blocking_words}{rest}"
