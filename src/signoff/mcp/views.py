"""The parts of a run that `show` gives to agents, each as one text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from signoff.app.answering import find_item
from signoff.app.history import form_of, load_state, need_review
from signoff.app.project import Project
from signoff.app.show import entry_to_json, show
from signoff.core import graph
from signoff.core.digest import SHORT
from signoff.core.requests import request_word
from signoff.documents.control_characters import shown_text
from signoff.errors import UsageError
from signoff.mcp.bounds import line
from signoff.review.finding import Finding, describe_equal, group_equal
from signoff.review.history import ReviewHistory, Version, describe_status
from signoff.runtime.amounts import format_spend
from signoff.runtime.store_port import RunRow

Part = Literal["findings", "diff", "text", "plan", "spend", "request"]
LONGEST_FINDING = 400
LONGEST_QUOTE = 160
LONGEST_SHOWN = 4_000
"""Characters of each value that a request shows; the page shows all of it."""


def part_of_run(project: Project, run: str | None, part: Part, number: int | None) -> str:
    """Returns a part of a run; `number` is a round, or the number of a request."""
    return _VIEWS[part](project, run, number)


def _findings(project: Project, run: str | None, number: int | None) -> str:
    _, history = need_review(project, run)
    found = [each for each in history.findings if number is None or _in_round(each, number)]
    groups = group_equal(history.listed(found))
    return "\n".join(_finding(history, each) for each in groups) or "no findings"


def _in_round(finding: Finding, number: int) -> bool:
    return any(iteration == number for iteration, _ in finding.history)


def _finding(history: ReviewHistory, group: Sequence[Finding]) -> str:
    finding = group[0]
    place = line(history.place(finding), LONGEST_QUOTE)
    what = line(finding.finding, LONGEST_FINDING)
    head = f"{place}: {finding.severity} {finding.constraint}: {what}"
    quote = "" if finding.omission else f'\n  "{line(finding.quote, LONGEST_QUOTE)}"'
    fix = finding.suggested_fix and f"\n  fix: {line(finding.suggested_fix, LONGEST_FINDING)}"
    equal = f"\n  {describe_equal(group)}" if len(group) > 1 else ""
    return f"{head}{quote}{fix}\n  {finding.id}, {describe_status(finding)}{equal}"


def _diff(project: Project, run: str | None, number: int | None) -> str:
    row, history = need_review(project, run)
    if number is not None and history.round(number) is None:
        raise UsageError(f"run {row.name!r} has no round {number}; it has {len(history.rounds)}")
    versions = history.versions
    if number is not None:
        pair = history.fix_of(number)
    else:
        pair = (versions[0], versions[-1]) if len(versions) > 1 else None
    return "\n".join(_hunks(history, *pair)) if pair is not None else "nothing was changed"


def _hunks(history: ReviewHistory, before: Version, after: Version) -> Iterator[str]:
    for path, hunks in history.changes(before, after).items():
        name = history.name_of(path)
        yield f"--- a/{name}\n+++ b/{name}"
        for hunk in hunks:
            answers = f"  # answers {', '.join(hunk.findings)}" if hunk.findings else ""
            yield f"{hunk.header}{answers}"
            yield from hunk.lines


def _text(project: Project, run: str | None, number: int | None) -> str:
    row, history = need_review(project, run)
    version = history.result if number is None else history.reviewed_in(number)
    if version is None:
        raise UsageError(f"run {row.name!r} has no version of the artifact yet")
    files = {history.name_of(path): text for path, text in version.files.items()}
    if len(files) == 1:
        return next(iter(files.values()))
    return "\n".join(f"==> {name} <==\n{text}" for name, text in files.items())


def _plan(project: Project, run: str | None, _number: int | None) -> str:
    row = project.run(run)
    limits = load_state(project, row).limits.to_json()
    allowed = ", ".join(f"{name} {value:g}" for name, value in limits.items())
    return f"{graph.text(project.find_again(row).workflow)}\nlimits: {allowed or 'none'}"


def _spend(project: Project, run: str | None, _number: int | None) -> str:
    details = show(project, run)
    entries = map(entry_to_json, details.ledger)
    lines = [", ".join(f"{k} {v}" for k, v in each.items() if v is not None) for each in entries]
    return "\n".join([format_spend(details.timeline.spend), *lines])


def _request(project: Project, run: str | None, number: int | None) -> str:
    item = find_item(project, run) if number is None else project.store.item(number)
    _check_run(project.run(run) if run is not None else None, item.run, item.id)
    form = form_of(project, item)
    head = (
        f"#{item.id} {request_word(form)} of {item.run}, {item.state}, digest {item.digest[:SHORT]}"
    )
    return "\n".join([head, item.prompt, *_details(form)])


def _check_run(row: RunRow | None, owner: str, number: int) -> None:
    if row is not None and row.name != owner:
        raise UsageError(f"request #{number} belongs to run {owner!r}, not {row.name!r}")


def _details(form: Mapping[str, Any]) -> Iterator[str]:
    for option in form.get("options") or ():
        about = f" ({option['description']})" if option.get("description") else ""
        yield f"option: {option['label']}{about}"
    for question in form.get("questions") or ():
        yield f"question {question['header']}: {question['question']}"
    if form.get("path"):
        yield f"file: {form['path']}"
    for name, value in (form.get("shown") or {}).items():
        text = "none" if value is None else shown_text(value)
        more = f"\n[{len(text) - LONGEST_SHOWN} more characters]" if text[LONGEST_SHOWN:] else ""
        yield f"{name}:\n{text[:LONGEST_SHOWN]}{more}"


_VIEWS: Mapping[str, Callable[[Project, str | None, int | None], str]] = {
    "findings": _findings,
    "diff": _diff,
    "text": _text,
    "plan": _plan,
    "spend": _spend,
    "request": _request,
}
