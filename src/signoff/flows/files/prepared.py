"""Reads the files of a flow once, before its run starts; everything after works on that copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from signoff.documents.globs import matches
from signoff.errors import UsageError
from signoff.flows.decision_file import read_decisions
from signoff.flows.files.ignore_comments import unknown_ignores
from signoff.flows.files.selection import FileSelector, Selection
from signoff.flows.files.skipping import Skip
from signoff.flows.flow import Flow
from signoff.flows.state import FILE_WARNINGS
from signoff.flows.step import StepKind
from signoff.review.artifact import ArtifactVersion
from signoff.review.coverage import NotRead, by_reason
from signoff.review.lasting_decision import LastingDecision, dismissed_before
from signoff.runtime.amounts import count


class NothingToReviewError(UsageError):
    """No file is left that a critic could read."""

    def __init__(self, selection: Selection) -> None:
        lines = ["there is nothing to review", *selection.coverage.lines()]
        super().__init__("; ".join(lines))
        self.selection = selection


def read_files(flow: Flow) -> dict[str, Any]:
    """Returns the files of a flow as parameters of its run; raises `UsageError` if it has none."""
    return prepared(flow, select(flow))


def select(flow: Flow) -> Selection:
    """Returns the files that a flow's `artifact` names."""
    source = flow.config.artifact
    if source is None:
        raise UsageError("the flow names no files: it has no artifact")
    selector = FileSelector(flow.root, flow.root)
    if source.since is not None:
        return selector.changed_since(source.since, source.every_path, source.intent)
    return selector.select(source.every_path, source.globs)


def prepared(
    flow: Flow,
    selection: Selection,
    *,
    decisions: Sequence[LastingDecision] | None = None,
    trusted: Mapping[str, str] | None = None,
    unchecked: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Returns a selection as parameters of a run; raises `NothingToReviewError` if it is empty.

    `decisions` are those of the project unless others are given, and `trusted` the texts whose
    comments may dismiss findings. `unchecked` are constraints that are left out, and why.
    """
    source = flow.config.artifact
    unmatched = _unmatched(source.globs if source is not None else (), selection)
    selection = covered(flow, selection)
    if not selection.files:
        raise NothingToReviewError(selection)
    every_line = source is not None and source.all_lines
    warnings = [*unmatched, *unknown_ignores(flow, selection.files)]
    known = read_decisions(flow.home) if decisions is None else decisions
    version, renamed = ArtifactVersion(selection.files), selection.renamed
    today = date.today()  # noqa: DTZ011  # decisions hold by the user's own calendar
    return {
        **({FILE_WARNINGS: warnings} if warnings else {}),
        "files": dict(selection.files),
        "base": {} if every_line else dict(selection.base),
        "renamed": dict(selection.renamed),
        "deleted": list(selection.deleted),
        "skipped": dict(selection.skipped),
        "unchecked": dict(unchecked or {}),
        "intent": selection.intent or (source.intent if source else ""),
        "trusted": dict(trusted) if trusted is not None else None,
        "decisions": [each.to_json() for each in dismissed_before(known, version, renamed, today)],
        "rule_decisions": [
            each.to_json() for each in known if each.all_like and not each.has_ended(today)
        ],
    }


def _unmatched(globs: Sequence[str], selection: Selection) -> list[str]:
    """Returns a warning for each pattern that is about no file: it may be misspelled."""
    paths = (*selection.files, *selection.skipped)
    return [
        f"artifact.globs: {pattern!r} matches no file"
        for pattern in globs
        if not pattern.startswith("!") and not any(matches([pattern], path) for path in paths)
    ]


def covered(flow: Flow, selection: Selection) -> Selection:
    """Returns a selection without the files that no critic reads against any constraint.

    In a folder or a change, a rule leaves them out. A file that the user named is missing from the
    review, because whoever names a file expects a verdict about it.
    """
    rules = [each for step in flow.of_kind(StepKind.CRITIQUE) for each in flow.selected(step)]
    unruled = [path for path in selection.files if not any(r.applies_to(path) for r in rules)]
    if not rules or not unruled:
        return selection

    def why(path: str) -> Skip:
        return Skip.UNCOVERED if path in selection.named else Skip.UNRULED

    return replace(
        selection,
        files={path: text for path, text in selection.files.items() if path not in unruled},
        base={path: text for path, text in selection.base.items() if path not in unruled},
        skipped={**selection.skipped, **{path: why(path).value for path in unruled}},
    )


def skipped_note(selection: Selection) -> str:
    """Returns how many files are not read and why, for a sentence; empty if all are."""
    found = selection.coverage
    parts = {"not read": found.missed, "left out": found.left_out}
    return "".join(f"; {title}: {_counts(each)}" for title, each in parts.items() if each)


def no_changes_note(selection: Selection) -> str:
    """Returns why a change has nothing to review, for a line of its own."""
    found = selection.coverage
    parts = {"not read": found.missed, "left out": found.left_out}
    facts = [f"{_counts(each)} {title}" for title, each in parts.items() if each]
    if selection.deleted:
        facts.append(f"{count(len(selection.deleted), 'file')} deleted")
    return f"nothing to review: {', '.join(facts) or 'no file has changed'}"


def _counts(entries: Sequence[NotRead]) -> str:
    return ", ".join(f"{len(names)} {why}" for why, names in by_reason(entries).items())
