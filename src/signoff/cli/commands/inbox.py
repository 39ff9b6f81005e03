"""`signoff inbox`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from signoff.app.answering import find_item, open_requests, request_number, request_to_json
from signoff.app.next_commands import next_command
from signoff.app.run_records import worker_for
from signoff.app.runs import list_runs
from signoff.app.trust import untrusted_lines
from signoff.cli.options import CliCommand, complete_run, open_here, output_options
from signoff.cli.output import Output
from signoff.cli.summary import (
    deadline_lines,
    detail_lines,
    file_line,
    headline,
    question_lines,
)
from signoff.cli.text import ago, clean, moment, near, one_line
from signoff.core.outcome import Status
from signoff.core.questions import format_answer
from signoff.core.requests import ItemState, request_word
from signoff.documents.control_characters import shown_text
from signoff.runtime.amounts import count

SHOWN_STUCK = 5
"""How many queued runs that no worker can take are named."""

SHOWN = 50
"""How many requests are shown by default."""


@click.command(cls=CliCommand)
@click.argument("where", required=False, metavar="[REQUEST|RUN]", shell_complete=complete_run)
@click.option(
    "-n", "--limit", type=int, metavar="NUMBER",
    help=f"The maximum number; -1 for all. The default is {SHOWN}, or all with --json.",
)  # fmt: skip
@output_options
def command(where: str | None, limit: int | None, out: Output) -> None:
    """List pending requests, oldest first, with the commands that answer them.

    Examples:
      signoff inbox                all pending requests
      signoff inbox first-try      the pending requests of one run
      signoff inbox 7              one request in full
    """
    with open_here() as project:
        if request_number(where or "") is not None:
            one = request_to_json(project, find_item(project, where))
            out.json(one) if out.as_json else _show(one, out, whole=True)
            return
        waiting = open_requests(project, where)
        most = limit if limit is not None else -1 if out.as_json else SHOWN
        listed = waiting if most < 0 else waiting[:most]
        requests = [request_to_json(project, project.store.item(line.id)) for line in listed]
        stuck = [row for row in list_runs(project, status=[Status.QUEUED]) if row.reason]
        fixes = [next_command(worker_for(project.store, row)) for row in stuck[:SHOWN_STUCK]]
        new = untrusted_lines(project)
    if out.as_json:
        out.json(requests)
        return
    if not waiting:
        out.line("no pending requests")
    for request in requests:
        _show(request, out, whole=False)
    if len(waiting) > len(requests):
        of_run = f" {where}" if where is not None else ""
        out.line(f"and {len(waiting) - len(requests)} more: signoff inbox{of_run} -n -1")
    _note_trust(len(new), out)
    for row, fix in zip(stuck, fixes, strict=False):
        out.note(f"run {row.name} is queued, but {row.reason}; {fix}")
    if stuck[SHOWN_STUCK:]:
        out.note(f"and {len(stuck) - SHOWN_STUCK} more: signoff runs --status queued")


def _note_trust(lines: int, out: Output) -> None:
    # Only the command line can answer it, so it is no request in the store.
    if lines:
        what = count(lines, "line")
        out.note(f"{what} of this project must be trusted before its runs continue")
        out.note("look at them: signoff trust --show")
        out.note("trust them: signoff trust")


def _show(request: dict[str, Any], out: Output, *, whole: bool) -> None:
    now = time.time()
    name, age = f"#{request['number']}  {request_word(request)}", ago(request["opened_at"], now)
    out.line(f"{name}  {request['run']} · {request['step']} · {age}", style="yellow")
    title = [request["title"], ""] if request["title"] else []
    lines = [*title, *clean(request["prompt"]).splitlines()] if whole else [headline(request)]
    for line in lines:
        out.prose(f"    {line}", hang="    ")
    for line in question_lines(request):
        out.prose(f"    {line}", hang="      ")
    if whole:
        _show_content(request, out)
    for line in deadline_lines(request, now) if whole else detail_lines(request):
        out.line(f"    {line}")
    if request["presence"] and request["state"] == ItemState.OPEN:
        out.line("    approving needs the signature of a passkey, on the page")
    if request["state"] != ItemState.OPEN:
        out.line(f"    {_ended(request)}", style="green")
    for command in request["commands"]:
        out.line(f"    {command}")


def _ended(request: dict[str, Any]) -> str:
    """Describes how a closed request ended."""
    answer = request["answer"]
    if answer is None:
        return "withdrawn: its run no longer needs an answer"
    value = answer["value"]
    what = f"answered {one_line(format_answer(value), 200)!r}"
    if isinstance(value, bool):
        what = "approved" if value else "rejected"
    text = f": {one_line(answer['text'], 200)}" if answer["text"] else ""
    return f"{what} by {answer['by']}, {moment(answer['at'])}{text}"


def _show_content(request: dict[str, Any], out: Output) -> None:
    for name, value in request["shown"].items():
        if value is None:
            # An approval without content has none to show; a gate names what it wanted to show.
            if name != "content":
                out.line(f"    {name}: (empty)")
            continue
        text = shown_text(value)
        out.line(f"    {name}:")
        for line in text.splitlines():
            out.line(f"    │ {line}")
    if request["file"]:
        # The recorded path starts in the run's folder; the user is somewhere else.
        out.line(f"    {file_line({**request, 'path': near(Path(request['file']))})}")
    out.line(f"    digest: {request['digest']}")
