"""The summary of a run: its status, its cost, its files and the commands that come next."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from signoff.app.runs.next_commands import next_commands
from signoff.app.runs.show import RunDetails
from signoff.core.amounts import duration, format_spend
from signoff.core.outcome import Status
from signoff.core.requests import AnswerForm, Edits, ItemState, request_word
from signoff.core.stop_reason import describe_stop
from signoff.documents.control_characters import shown_text
from signoff.surfaces.cli.exits import OF_STATUS
from signoff.surfaces.cli.output import STYLES, Output, clean, moment, near, one_line
from signoff.views.narration import describe_answer

SHOWN_REQUESTS = 5

WORDS = {
    Status.WAITING: "waiting for a human",
    Status.PARKED: "parked",
    Status.LIMIT: "round limit reached",
    Status.BUDGET: "budget reached",
    Status.NOT_CONVERGING: "not converging",
    Status.FINDINGS: "findings open",
    Status.INCOMPLETE: "review incomplete",
}
MARKS = {"green": "✓", "cyan": "●", "yellow": "●"}
"""The symbol of a status, by its color; any other is a failure."""


def report_to_json(report: RunDetails) -> dict[str, Any]:
    """Returns a run as plain values, with the exit code of its status; None while it runs."""
    return {**report.to_json(), "exit_code": OF_STATUS.get(report.row.status)}


def print_summary(report: RunDetails, out: Output) -> None:
    """Prints how a run ended; if the output is quiet, only that, its result and what comes next."""
    row, line = report.row, report.timeline
    style = STYLES.get(row.status.value, "")
    mark = MARKS.get(style, "✗")
    words = WORDS.get(row.status, row.status.value)
    if row.status is Status.WAITING and report.answered and not report.requests:
        words = "answered, not resumed yet"
    reason = report.stop_reason if row.status is not Status.WAITING else None
    how, why = describe_stop(words, reason)
    if row.status is Status.QUEUED:
        why = row.reason
    first = f"{mark} {how}  {row.name}{why and f': {one_line(why)}'}"
    out.prose(first, style=style, hang="  ")
    if not out.quiet:
        spend = f"{format_spend(line.spend)} · {duration(line.spend.seconds)} at work"
        out.prose(f"  {spend}", hang="  ")
        if report.notation_report is not None:
            print_indented(report.notation_report.summary, out)
    print_end(report, out)
    if report.folder.is_dir() and not out.quiet:
        out.line(f"  files: {near(report.folder)}")
    for text in next_lines(report):
        # Commands are not wrapped, so that they can be copied.
        # A request is prose about something; everything else is meant to be copied.
        if text.startswith("#"):
            out.prose(f"  {text}", hang="     ")
        else:
            out.line(f"  {text}" if text else "")


def print_end(report: RunDetails, out: Output) -> None:
    """Prints what a run that has ended leaves to its user: the file, and what it is."""
    end, final = report.end, report.folder / "final"
    if end is not None:
        print_indented(end.note, out)
        out.line(f"  {end.label}: {near(report.folder / end.path)}")
        if end.latest:
            out.line(f"  {end.latest_label}: {near(report.folder / end.latest)}")
        if end.files.get(end.guide) and end.guide != end.path:
            out.line(f"  details: {near(report.folder / end.guide)}")
    elif report.row.status in _FINAL_LABELS and final.is_dir():
        out.line(f"  {_FINAL_LABELS[report.row.status]}: {near(final)}")


def print_indented(text: str, out: Output) -> None:
    """Prints each line of a text with an indent of two spaces."""
    for line in text.splitlines():
        out.line(f"  {line}")


def print_details(report: RunDetails, out: Output) -> None:
    """Prints the details that a run's notation reports beyond the summary."""
    if report.progress is not None and report.progress.lines:
        out.line()
        for line in report.progress.lines:
            out.prose(f"  {one_line(line, 500)}", hang="    ")
    if report.notation_report is not None and report.notation_report.details:
        out.line()
        print_indented(report.notation_report.details, out)


def next_lines(report: RunDetails) -> Iterator[str]:
    """Yields what the user can do next, as exact commands."""
    if report.row.status is Status.WAITING:
        yield from _waiting(report)
    else:
        yield from next_commands(report.remedies)


_FINAL_LABELS = {
    Status.COMPLETED: "result",
    Status.LIMIT: "best so far",
    Status.NOT_CONVERGING: "best so far",
}
"""What the folder `final` of a run has, if its notation does not say more."""


def _waiting(report: RunDetails) -> Iterator[str]:
    for request in report.answered[:SHOWN_REQUESTS]:
        words = describe_answer(request["answer"] or {})
        yield f"#{request['number']} {request_word(request)}: {words}"
    if report.answered:
        rest = " (or answer the rest first)" if report.requests else ""
        yield f"to continue with these answers{rest}, run: signoff resume {report.row.name}"
    for request in report.requests[:SHOWN_REQUESTS]:
        yield ""
        yield f"#{request['number']} {request_word(request)}: {headline(request)}"
        details = (*question_lines(request), *detail_lines(request), *_commands(report, request))
        yield from (f"   {line}" for line in details)
    if len(report.requests) > SHOWN_REQUESTS:
        yield f"and {len(report.requests) - SHOWN_REQUESTS} more: signoff inbox {report.row.name}"


def _commands(report: RunDetails, request: Mapping[str, Any]) -> Sequence[str]:
    """Returns the commands that answer a request; work that is handed out is submitted instead."""
    if report.handed_out and request["kind"].answer_form is AnswerForm.WORK:
        return [f"signoff next {report.row.name} --item {request['number']}"]
    commands: Sequence[str] = request["commands"]
    return commands


WIDTH = 200


def headline(request: Mapping[str, Any]) -> str:
    """Returns a request's title, or the beginning of its prompt."""
    return one_line(request.get("title") or request["prompt"], WIDTH)


def detail_lines(request: Mapping[str, Any]) -> Iterator[str]:
    """Yields how to see more than the headline shows, and the deadline."""
    if request["shown"] or headline(request) != one_line(request["prompt"]):
        yield f"details: signoff inbox {request['number']}"
        if request["prompt_file"]:
            yield f"prompt: {near(Path(request['prompt_file']))}"
    yield from deadline_lines(request, time.time())


def question_lines(request: Mapping[str, Any]) -> Iterator[str]:
    """Yields the questions of a request with their options, or a choice's described options."""
    for question in request["questions"]:
        how = " (choose one or more)" if question.get("multi_select") else ""
        text = "\n  ".join(clean(question["text"]).splitlines())
        yield f"{clean(question['header'])}: {text}{how}"
        yield from map(option_line, question["options"])
    if not request["questions"] and any(each.get("description") for each in request["options"]):
        yield from map(option_line, request["options"])


def option_line(option: Mapping[str, Any], mark: str = "-") -> str:
    """Returns an option with its description."""
    described = f": {one_line(option['description'])}" if option.get("description") else ""
    return f"  {mark} {clean(option['label'])}{described}"


def shown_lines(shown: Mapping[str, Any] | None, most: int | None = None) -> Iterator[str]:
    """Yields what a request shows, each text behind a bar; `most` lines of each text."""
    for name, value in (shown or {}).items():
        if value is None:
            # An approval without content has none to show; a gate names what it wanted to show.
            if name != "content":
                yield f"{name}: (empty)"
            continue
        lines = clean(shown_text(value)).splitlines()
        yield f"{name}:"
        yield from (f"│ {line}" for line in lines[:most])
        if most is not None and len(lines) > most:
            yield f"│ … {len(lines) - most} more lines"


def file_line(request: Mapping[str, Any]) -> str:
    """Returns the file of an approval, and whether its approver may edit it."""
    note = " (you can edit it before you approve)" if request.get("edits") == Edits.ACCEPT else ""
    return f"file: {clean(request['path'])}{note}"


def deadline_lines(request: Mapping[str, Any], now: float) -> Iterator[str]:
    """Yields a request's deadline and what happens then."""
    deadline = request.get("deadline")
    if deadline is None or request["state"] != ItemState.OPEN:
        return
    if deadline > now:
        yield f"deadline: {moment(deadline)}, then {request['at_deadline']}"
    else:
        yield f"the deadline passed at {moment(deadline)}, and {request['at_deadline']}"
