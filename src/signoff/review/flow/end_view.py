"""What a flow leaves to its user at the end of a run: the files in `final/`, and what they are.

The step that ends a run writes its result. Without a result there may be no step left to run: a
limit is reached, the run is cancelled, or it fails. So everything else is computed from the stored
state when the run directory is written, for every end in the same way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from textwrap import wrap
from typing import Any, NamedTuple

from signoff.core.amounts import count
from signoff.core.errors import UnsafePath
from signoff.core.events import ROUNDS
from signoff.core.outcome import NOT_ENDED, Status
from signoff.core.run_state import RunState
from signoff.core.severity import Severity
from signoff.core.stop_reason import (
    AnswerPending,
    BudgetReached,
    Rejected,
    RoundLimit,
    describe_stop,
)
from signoff.core.words import CHANGES, Label
from signoff.documents.control_characters import escape_controls
from signoff.notation import RunReport
from signoff.review.flow.coverage import constraint_results, run_coverage
from signoff.review.flow.state import (
    LONGEST_FINDING,
    NOT_CONVERGING,
    STATUS,
    UNREVIEWED,
    FlowState,
    blocking_severities,
    critiques_in,
    finding_details,
    finding_line,
    findings_of,
    read,
    shortened,
    without_findings,
)
from signoff.review.pure.artifact import UNNAMED, ArtifactVersion
from signoff.review.pure.critique import Critique
from signoff.review.pure.finding import Finding, blocking_first, group_equal
from signoff.review.pure.history import describe_result, open_counts
from signoff.review.pure.policy import for_judge
from signoff.runtime.paths import check_path
from signoff.runtime.project_files import written_note
from signoff.store.run_layout import EndView

_YOU_DECIDE = "you decide whether it continues"


class _OutputFiles(NamedTuple):
    """`output` of a stored flow; reading it as part of a file would load all of pydantic."""

    dir: str = "final"
    filename: str = "artifact.md"
    write_back: str = "never"


def end_view(state: RunState, description: Mapping[str, Any]) -> EndView | None:
    """Returns what a run leaves; None while it has not ended, or if there is no artifact yet."""
    view = FlowState(state.state_with_pending)
    if not view.content or (state.status in NOT_ENDED and not _needs_result(state)):
        return None
    source = description.get("source") or {}
    output = _OutputFiles(**((source.get("flow") or {}).get("output") or {}))
    finished = state.status is Status.COMPLETED
    # Files are shown like the tree they are from. A single text has a place of its own, and an
    # earlier version beside it if the latest one is worse.
    if view.has_files:
        return files_end(view, output.dir, description, state.items.values(), finished=finished)
    if finished:
        return _finished(state, view, output)
    return _unfinished_end(state, view, output, blocking_severities(description))


def _needs_result(state: RunState) -> bool:
    """Tells whether a human decides about more rounds or what to do with the result."""
    if state.status is not Status.WAITING:
        return False
    if state.pending is not None:
        return state.pending.way == ROUNDS
    # The step asks before it ends, so the question is one of its effects.
    effects = state.effects.get("", {})
    return any(i.startswith(NOT_CONVERGING) and not each.done for i, each in effects.items())


def _finished(state: RunState, view: FlowState, output: _OutputFiles) -> EndView:
    path, guide = f"{output.dir}/{output.filename}", f"{output.dir}/{STATUS}"
    warnings, result = view.result_warnings, describe_result(view, completed=True)
    how = f" and was approved by {view.approved_by}" if view.approved_by else ""
    passed = f"`{output.filename}` passed review in round {state.iteration}{how}."
    lines = [_heading(result), "", passed]
    if warnings:
        lines += ["", "## Before you use it", "", *(f"- {each}" for each in warnings)]
    status = _status_text(lines, view) if warnings or not view.reviewed else None
    with_warnings = f"{result}, with {count(len(warnings), 'warning')}:"
    note = [with_warnings, *(f"  {w}" for w in warnings)]
    facts = {
        "approved_by": view.approved_by or None,
        "reviewed": view.reviewed,
        "round": state.iteration,
        "open": open_counts(view.ledger.open()),
        "warnings": warnings,
    }
    return EndView(
        path,
        passed=True,
        label="result",
        note="\n".join(note) if warnings else "",
        facts=facts,
        files={guide: status, _latest_name(output): None},
        guide=guide,
    )


def _latest_name(output: _OutputFiles) -> str:
    """Returns the name of the latest version, where `output.filename` is an earlier one."""
    stem, dot, suffix = output.filename.rpartition(".")
    return f"{output.dir}/{stem}_latest.{suffix}" if dot else f"{output.dir}/{suffix}_latest"


def _unfinished_end(
    state: RunState, view: FlowState, output: _OutputFiles, block_on: Collection[Severity]
) -> EndView:
    path, status = f"{output.dir}/{output.filename}", f"{output.dir}/{STATUS}"
    # A run without an approval hands over the best version that was reviewed and never just the
    # last one, which may be a fix that nobody has read.
    critiques = _unfinished(state)
    # A judge without any critique ranks a version, too.
    best = view.best if view.best and view.best.get("read_against", 1) else None
    latest_reviewed = best is not None and _was_read(view)
    # Whatever is not the best version is shown beside it, because the user has paid for it.
    text = str(best["artifact"]) if best else view.artifact
    newer = view.artifact if text != view.artifact else None
    latest = _latest_name(output)
    name = latest.rpartition("/")[2]
    unread = "not fully reviewed" if critiques else "not reviewed"
    # An earlier version is better: it has fewer findings, or was read against more constraints.
    what = "reviewed, too" if latest_reviewed else unread
    why = _why(state).rstrip(".")
    result = describe_result(view, completed=False)
    lines = [_heading(result), "", f"{why[:1].upper()}{why[1:]}.", ""]
    if best:
        about = f"(round {best['round']}; open: {_format_score(best['score'])})"
        note = f"{result}: best reviewed version {about}"
        lines.append(f"`{output.filename}` is the best version that was reviewed {about}.")
    else:
        note = f"{result}: latest draft, {unread}"
        lines.append(f"`{output.filename}` was {unread}.")
    if newer is not None:
        lines.append(f"`{name}` is the latest version, which was {what}.")
    if findings := findings_of(best, view.ledger, block_on):
        version = ArtifactVersion({UNNAMED: text})
        lines += ["", "## Remaining work", "", *_listed(version, findings)]
    unfinished = list(_unfinished_note(state, critiques))
    lines += [f"\n{each[:1].upper()}{each[1:]}." for each in unfinished]
    facts = {
        "reviewed": best is not None,
        "round": best["round"] if best else None,
        "open": _open_counts(best["score"]) if best else None,
        "unfinished": [critique.to_json() for critique in critiques],
    }
    return EndView(
        path,
        passed=False,
        label="best so far" if best else "latest draft",
        note="\n".join([note, *unfinished]),
        latest=latest if newer is not None else "",
        latest_label=f"latest version, {what}",
        latest_reviewed=latest_reviewed,
        facts=facts,
        files={path: text, latest: newer, status: _status_text(lines, view)},
        guide=status,
    )


def _was_read(view: FlowState) -> bool:
    """Tells whether critics have read the latest version."""
    last = view.raw.get("read") or {}
    return any(view.critiques_by_step.values()) and last.get("artifact") == view.current


def _why(state: RunState) -> str:
    match state.stop_reason:
        case BudgetReached() | RoundLimit() as reason:
            return str(reason)
        case Rejected(by=by, text=text):
            how, why = f"stopped by {by or 'a human'}", text
        case AnswerPending() if state.pending is not None:
            return f"{without_findings(state.pending.problem)}: {_YOU_DECIDE}"
        case AnswerPending():
            return f"not converging: {_YOU_DECIDE}"
        case reason:
            failed = state.status is Status.FAILED
            words = state.status.value.replace("_", " ")
            how, why = describe_stop(f"failed in step {state.step!r}" if failed else words, reason)
    return f"{how}: {shortened(why, LONGEST_FINDING)}" if why else how


def _status_text(lines: Sequence[str], view: FlowState) -> str:
    # Warnings about the result have been listed above; the rest is about the way to it.
    own = set(view.result_warnings)
    warnings = [
        f"- Round {w['round']}, {w['step']}: {w['text']}"
        for w in view.warnings
        if w["text"] not in own
    ]
    section = ["", "## Warnings", "", *warnings] if warnings else []
    return escape_controls("\n".join([*lines, *section])) + "\n"


def _listed(version: ArtifactVersion, findings: Iterable[Finding]) -> Iterator[str]:
    """Yields findings as a list in Markdown, with what is needed to fix them by hand."""
    for group in group_equal(findings):
        # It repeats text of models, which must not be able to add headings to this file.
        yield f"- {finding_line(version, group[0])}"
        yield from (f"  - {each}" for each in finding_details(group))


def _unfinished(state: RunState) -> list[Critique]:
    """Returns the critiques of a review that the end of the run has cut off.

    They were paid for, but only the end of their step would have counted their issues.
    """
    if state.pending is not None:
        return []
    return for_judge(read([each for item in state.items.values() for each in critiques_in(item)]))


def _unfinished_note(state: RunState, critiques: Sequence[Critique]) -> Iterator[str]:
    """Yields what the review had found that the end of the run has cut off, and where it is."""
    if critiques:
        issues = count(sum(len(critique.issues) for critique in critiques), "issue")
        found = f"{count(len(critiques), 'critique')} with {issues}"
        where = f"iterations/{state.iteration}/critiques"
        yield f"step {state.step!r} did not finish; it had {found}, in `{where}`"


def _open_counts(score: Sequence[int]) -> dict[str, int]:
    return {s.value: n for s, n in zip(Severity, score, strict=True) if n}


def _format_score(score: Sequence[int]) -> str:
    counts = [f"{n} {severity}" for severity, n in _open_counts(score).items()]
    return ", ".join(counts) or "nothing"


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
        _heading(describe_result(view, completed=finished)),
        "",
        f"{count(len(view.files), 'file')} reviewed.",
    ]
    note = written_note(view.written)
    coverage = run_coverage(view.raw, description, view.files, items)
    notes = [*([note] if note else []), *coverage.lines()]
    if note:
        lines += ["", "## Files of the project", "", f"{note}."]
    if findings:
        lines += ["", "## Open findings", "", *_listed(version, findings)]
    if unread := list(coverage.lines(len(view.files) + len(coverage.left_out))):
        lines += ["", "## Not read", "", *(f"- {line}" for line in unread)]
    changed = _changes_files(description)
    files: dict[str, str | None] = {}
    if changed:
        files = {f"{folder}/{stored_path(path)}": text for path, text in view.files.items()}
    return EndView(
        folder if changed else guide,
        passed=finished,
        label=("result" if finished else "latest files") if changed else "findings",
        note="\n".join(notes),
        facts={
            "approved_by": view.approved_by or None,
            "reviewed": bool(view.rounds),
            "open": open_counts(findings),
            "files": len(view.files),
            "coverage": coverage.to_json(),
            **view.written,
        },
        files={**files, guide: "\n".join(lines) + "\n"},
        guide=guide,
    )


def _heading(result: str) -> str:
    return f"# {result[:1].upper()}{result[1:]}"


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


MOST_FINDINGS = 12
"""Entries of open findings that are listed, what blocks first; the others are only counted."""

MOST_WARNINGS = 8
"""Warnings listed, the latest ones."""

LONGEST_WARNING = 160
"""Characters of a warning in the list."""

LONGEST_IN_LIST = 100
"""Characters of a finding in the list."""


def report(state: Mapping[str, Any], definition: Mapping[str, Any]) -> RunReport:
    """Returns the report on a run from its state and its definition."""
    view, block_on = FlowState(state), blocking_severities(definition)
    rounds, warnings = view.rounds, view.warnings
    listed = sorted(view.ledger.findings.values(), key=blocking_first(block_on))
    plot = [draw_plot(rounds)] if rounds else []
    several = len(rounds) > 1
    summary = [*(plot if several else []), *([] if view.reviewed else [UNREVIEWED])]
    details = [] if several else plot
    details += [*_open_lines(view, block_on), *_warning_lines(warnings)]
    return RunReport("\n".join(summary), "\n".join(details), partial(_facts, view, listed))


def _facts(view: FlowState, findings: Sequence[Finding]) -> dict[str, Any]:
    """Returns what is known about a run, with its findings in the order of a list."""
    results = constraint_results(view.raw, view.content, findings)
    facts = {
        "rounds": view.rounds,
        "remarks": view.warnings,
        "constraints": [each.to_json() for each in results],
        "findings": [each.facts() for each in findings],
    }
    return {name: values for name, values in facts.items() if values}


def _open_lines(view: FlowState, block_on: Collection[Severity]) -> list[str]:
    """Returns the open findings of the latest review and, if it was another, of the best one."""
    # The best version may be older than the latest review, so its own findings are listed first:
    # they are about the file that the user gets.
    latest = view.ledger.open(block_on)
    same = view.best is None or {f.id for f in latest} == {f["id"] for f in view.best["findings"]}
    if view.best is None or view.passed or same:
        return _finding_lines("open findings", view, latest)
    best = findings_of(view.best, view.ledger, block_on)
    where = f"open findings of the best version (round {view.best['round']})"
    return [
        *_finding_lines(where, view, best),
        *_finding_lines("open findings of the latest review", view, latest),
    ]


def _finding_lines(title: str, view: FlowState, findings: list[Finding]) -> list[str]:
    if not findings:
        return []
    groups = group_equal(findings)
    lines = [_listed_finding(view, each) for each in groups[:MOST_FINDINGS]]
    lines = [f"{title}: {len(findings):,}", *lines]
    left = sum(map(len, groups[MOST_FINDINGS:]))
    return [*lines, f"  ... and {left:,} more"] if left else lines


def _listed_finding(view: FlowState, group: Sequence[Finding]) -> str:
    details = finding_details(group, LONGEST_IN_LIST)
    line = f"  {finding_line(view.content, group[0], LONGEST_IN_LIST)}"
    return "\n".join([line, *(f"    {each}" for each in details)])


def _warning_lines(warnings: list[Mapping[str, Any]]) -> list[str]:
    """Returns the latest warnings, oldest first, with the round and the step of each."""
    if not warnings:
        return []
    # The latest warnings are the ones about the text that the user gets.
    left = len(warnings) - MOST_WARNINGS
    earlier = [f"  ... and {left} earlier, in the JSON output"] if left > 0 else []
    lines = [
        f"  {each['round']} {each['step']}: {shortened(each['text'], LONGEST_WARNING)}"
        for each in warnings[-MOST_WARNINGS:]
    ]
    return [f"warnings: {len(warnings)}", *earlier, *lines]


BAR = 16
"""The longest row of letters; with more findings, one letter represents several (`x3`).

With its indent the plot fits a terminal of 60 columns.
"""
MOST_ROUNDS = 20
"""Rounds that are shown; of a longer run, the first and the last ones."""
_FIRST = 6
_WIDEST = 8
"""Characters of a heading; the words of a longer one stand above each other."""


def draw_plot(rounds: Sequence[Mapping[str, Any]]) -> str:
    """Returns a plot of at most 58 columns: the open findings by severity, and the changes."""
    if not rounds:
        return "no rounds were reviewed"
    # Each severity may need one more letter than its share, because even a single finding is shown.
    per_letter = max(1, -(-max(map(_total, rounds)) // (BAR - len(Severity))))
    lines = [_plot_line(summary, per_letter) for summary in rounds]
    if len(lines) > MOST_ROUNDS:
        omitted = len(lines) - MOST_ROUNDS
        lines[_FIRST : _FIRST + omitted] = [f"  ...  {omitted} more rounds"]
    return "\n".join([*_plot_heading(per_letter), *lines])


def _plot_heading(per_letter: int) -> Iterator[str]:
    letters = " ".join(severity.letter for severity in Severity)
    scale = letters if per_letter == 1 else f"{letters} x{per_letter}"
    headings = [wrap(each.words, _WIDEST) for each in CHANGES]
    for left in reversed(range(max(map(len, headings)))):
        start = "" if left else f"round  open  {scale}"
        words = (each[-1 - left] if left < len(each) else "" for each in headings)
        columns = (f"{word:>{_width(each)}}" for word, each in zip(words, CHANGES, strict=True))
        yield f"{start:<{13 + BAR}}{''.join(columns)}".rstrip()


def _plot_line(summary: Mapping[str, Any], per_letter: int) -> str:
    bar = "".join(
        severity.letter * -(-_open(summary, severity) // per_letter) for severity in Severity
    )
    columns = "".join(f"{summary.get(each) or '.':>{_width(each)}}" for each in CHANGES)
    return f"{summary['round']:>5}  {_total(summary):>4}  {bar or '-':<{BAR}}{columns}"


def _width(label: Label) -> int:
    return max(4, *map(len, wrap(label.words, _WIDEST))) + 2


def _total(summary: Mapping[str, Any]) -> int:
    return sum(_open(summary, severity) for severity in Severity)


def _open(summary: Mapping[str, Any], severity: Severity) -> int:
    return int(summary["open"].get(severity.value, 0))
