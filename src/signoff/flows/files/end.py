"""What a run about files leaves: the fixed files in `final/`, like the tree they come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.errors import UnsafePath
from signoff.flows.state import STATUS, FlowState
from signoff.review.artifact import ArtifactVersion, locate_finding
from signoff.review.findings import Finding
from signoff.runtime.amounts import count
from signoff.runtime.paths import check_path
from signoff.runtime.project_files import written_note
from signoff.store.rundir.layout import EndView


def files_end(
    view: FlowState, folder: str, description: Mapping[str, Any], *, approved: bool
) -> EndView:
    """Returns what a run about files leaves; one that only reviewed leaves a list of findings."""
    findings = view.ledger.open()
    version = ArtifactVersion(view.files)
    guide = f"{folder}/{STATUS}"
    heading = "Approved" if approved else "Not approved"
    lines = [f"# {heading}", "", f"{count(len(view.files), 'file')} reviewed."]
    note = written_note(view.written)
    if note:
        lines += ["", "## Files of the project", "", f"{note}."]
    if findings:
        lines += ["", "## Open findings", "", *(_line(version, each) for each in findings)]
    changed = _changes_files(description)
    files: dict[str, str | None] = {}
    if changed:
        files = {f"{folder}/{stored_path(path)}": text for path, text in view.files.items()}
    open_counts = {each.severity.value: 0 for each in findings}
    for each in findings:
        open_counts[each.severity.value] += 1
    return EndView(
        folder if changed else guide,
        approved=approved,
        label=("result" if approved else "latest files") if changed else "findings",
        note=note,
        facts={
            "reviewed": bool(view.rounds),
            "open": open_counts,
            "files": len(view.files),
            **view.written,
        },
        files={**files, guide: "\n".join(lines) + "\n"},
        guide=guide,
    )


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


def _line(version: ArtifactVersion, finding: Finding) -> str:
    where = locate_finding(version, finding) or finding.path
    text = " ".join(finding.finding.split())
    return f"- `{where}` [{finding.severity.value}] {finding.constraint}: {text} ({finding.id})"
