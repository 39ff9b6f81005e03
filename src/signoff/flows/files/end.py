"""What a run about files leaves: the fixed files in `final/`, like the tree they come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from signoff.errors import UnsafePath
from signoff.flows.coverage import run_coverage
from signoff.flows.state import STATUS, FlowState, blocking_severities
from signoff.review.artifact import ArtifactVersion, locate_finding
from signoff.review.finding import Finding, describe_equal, group_equal
from signoff.runtime.amounts import count
from signoff.runtime.paths import check_path
from signoff.runtime.project_files import written_note
from signoff.store.rundir.layout import EndView


def files_end(
    view: FlowState,
    folder: str,
    description: Mapping[str, Any],
    items: Iterable[Any],
    *,
    finished: bool,
) -> EndView:
    """Returns what a run about files leaves; one that only reviewed leaves a list of findings.

    `items` are the results of reviews in a step that was cut off.
    """
    findings = view.ledger.open(blocking_severities(description))
    version = ArtifactVersion(view.files)
    guide = f"{folder}/{STATUS}"
    lines = [
        f"# {result_heading(view, finished=finished)}",
        "",
        f"{count(len(view.files), 'file')} reviewed.",
    ]
    note = written_note(view.written)
    coverage = run_coverage(view.raw, description, view.files, items)
    notes = [*([note] if note else []), *coverage.lines()]
    if note:
        lines += ["", "## Files of the project", "", f"{note}."]
    if findings:
        entries = (_line(version, group) for group in group_equal(findings))
        lines += ["", "## Open findings", "", *entries]
    if unread := list(coverage.lines(len(view.files) + len(coverage.left_out))):
        lines += ["", "## Not read", "", *(f"- {line}" for line in unread)]
    changed = _changes_files(description)
    files: dict[str, str | None] = {}
    if changed:
        files = {f"{folder}/{stored_path(path)}": text for path, text in view.files.items()}
    open_counts = {each.severity.value: 0 for each in findings}
    for each in findings:
        open_counts[each.severity.value] += 1
    return EndView(
        folder if changed else guide,
        passed=finished,
        label=("result" if finished else "latest files") if changed else "findings",
        note="\n".join(notes),
        facts={
            "approved_by": view.approved_by or None,
            "reviewed": bool(view.rounds),
            "open": open_counts,
            "files": len(view.files),
            "coverage": coverage.to_json(),
            **view.written,
        },
        files={**files, guide: "\n".join(lines) + "\n"},
        guide=guide,
    )


def result_heading(view: FlowState, *, finished: bool) -> str:
    """Returns how a review went: judges and rules pass a text, only humans approve it."""
    if finished:
        return f"Approved by {view.approved_by}" if view.approved_by else "Passed review"
    return "Passed review, not approved" if view.passed else "Has not passed review"


def lower_first(text: str) -> str:
    """Returns a heading as the beginning of a note."""
    return f"{text[:1].lower()}{text[1:]}"


def stored_path(path: str) -> str:
    """Returns where a run directory has a file: a hidden name is shown with `_` before it."""
    try:
        check_path(path)
    except UnsafePath:
        names = [
            "".join(c if c.isalnum() or c in "._-" else "_" for c in n) for n in path.split("/")
        ]
        return "/".join(f"_{name}" if name.startswith((".", "~")) else name for name in names)
    return path


def _changes_files(description: Mapping[str, Any]) -> bool:
    flow = (description.get("source") or {}).get("flow") or {}
    return any(step.get("step") == "refine" for step in flow.get("workflow", ()))


def _line(version: ArtifactVersion, group: Sequence[Finding]) -> str:
    finding = group[0]
    where = locate_finding(version, finding) or finding.path
    text = " ".join(finding.finding.split())
    line = f"- `{where}` [{finding.severity.value}] {finding.constraint}: {text} ({finding.id})"
    return f"{line}\n  {describe_equal(group)}" if len(group) > 1 else line
