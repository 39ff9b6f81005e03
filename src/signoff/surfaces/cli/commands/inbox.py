"""`signoff inbox`, `answer`, `approve` and `reject`."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from signoff.app.people import answering
from signoff.app.people.answering import AnswerInput
from signoff.app.runs.history import form_of
from signoff.app.runs.next_commands import next_command
from signoff.app.runs.run_records import worker_for
from signoff.app.runs.runs import catch_up, list_runs
from signoff.app.settings.project import Project
from signoff.app.settings.trust import untrusted_lines
from signoff.app.workers.hand_over import wake_if_handed_over
from signoff.core.amounts import count
from signoff.core.outcome import Status
from signoff.core.questions import format_answer
from signoff.core.requests import ItemState, request_word
from signoff.runtime.store_port import InboxItem
from signoff.surfaces.cli import exits, summary
from signoff.surfaces.cli import options as cli
from signoff.surfaces.cli.driving import drive_resume
from signoff.surfaces.cli.output import DisplayOptions, Output, ago, clean, moment, near, one_line

SHOWN_STUCK = 5
"""How many queued runs that no worker can take are named."""

SHOWN = 50
"""How many requests are shown by default."""


@cli.command()
@click.argument("where", required=False, metavar="[REQUEST|RUN]", shell_complete=cli.complete_run)
@click.option(
    "-n", "--limit", type=int, metavar="NUMBER",
    help=f"The maximum number; -1 for all. The default is {SHOWN}, or all with --json.",
)  # fmt: skip
def command(where: str | None, limit: int | None, out: Output) -> None:
    """List pending requests, oldest first, with the commands that answer them.

    Examples:
      signoff inbox                all pending requests
      signoff inbox first-try      the pending requests of one run
      signoff inbox 7              one request in full
    """
    with cli.open_here() as project:
        if answering.request_number(where or "") is not None:
            one = answering.request_to_json(project, answering.find_item(project, where))
            out.json(one) if out.as_json else _show(one, out, whole=True)
            return
        waiting = answering.open_requests(project, where)
        most = limit if limit is not None else -1 if out.as_json else SHOWN
        listed = waiting if most < 0 else waiting[:most]
        items = [project.store.item(line.id) for line in listed]
        requests = [answering.request_to_json(project, item) for item in items]
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


def _show(request: Mapping[str, Any], out: Output, *, whole: bool) -> None:
    now = time.time()
    name, age = f"#{request['number']}  {request_word(request)}", ago(request["opened_at"], now)
    out.line(f"{name}  {request['run']} · {request['step']} · {age}", style="yellow")
    title = [request["title"], ""] if request["title"] and whole else []
    prompt = clean(request["prompt"]).splitlines() if whole else [summary.headline(request)]
    for line in (*title, *prompt):
        out.prose(f"    {line}", hang="    ")
    for line in summary.question_lines(request):
        out.prose(f"    {line}", hang="      ")
    if whole:
        _show_content(request, out)
    for line in summary.deadline_lines(request, now) if whole else summary.detail_lines(request):
        out.line(f"    {line}")
    if request["presence"] and request["state"] == ItemState.OPEN:
        out.line("    approving needs the signature of a passkey, on the page")
    if request["state"] != ItemState.OPEN:
        out.line(f"    {_ended(request)}", style="green")
    for command in request["commands"]:
        out.line(f"    {command}")


def _ended(request: Mapping[str, Any]) -> str:
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


def _show_content(request: Mapping[str, Any], out: Output) -> None:
    for line in summary.shown_lines(request["shown"]):
        out.line(f"    {line}")
    if request["file"]:
        # The recorded path starts in the run's folder; the user is somewhere else.
        out.line(f"    {summary.file_line({**request, 'path': near(Path(request['file']))})}")
    out.line(f"    digest: {request['digest']}")


@click.command(cls=cli.CliCommand)
@click.argument("words", nargs=-1, metavar="[REQUEST|RUN] [VALUE | HEADER=LABEL ...]")
@click.option("--file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Read the answer from a file.")  # fmt: skip
@click.option("--text", "--why", "text", default="", help="A comment or reason.")
@cli.answer_options
@cli.progress_options
def answer_command(
    words: tuple[str, ...],
    file: Path | None,
    text: str,
    by: str,
    digest: str | None,
    resume_now: bool,
    limits: dict[str, str],
    display: DisplayOptions,
) -> int:
    """Answer a request: a question, several questions, a choice or a response.

    REQUEST is the number shown by `signoff inbox`; the default is the latest run's only
    request. VALUE is a text, an option or its number; - reads it from stdin. Each request
    is answered once. Resume the run with --resume, or later with `signoff resume`.

    Several questions are answered together, each under its header. Where several options may
    be chosen, put commas between them. A single question needs no header.

    Examples:
      signoff answer yes                     the latest run's only question
      signoff answer 7 "Use the short title"
      signoff answer 7 2 --text "because"    the second option, with a reason
      signoff answer 7 Storage=SQLite Auth=token,session
      signoff answer first-try --file reply.md --resume
      pbpaste | signoff answer 7 -
    """
    where, value = _parse(words, file)
    with cli.open_here(limits=limits, drives=resume_now) as project:
        if where is None and words and words[0] != "-":
            answering.refuse_reference_as_answer(project, words[0])
        item = answering.find_item(project, where)
        if isinstance(value, list) and not form_of(project, item).get("questions"):
            raise click.UsageError(_TOO_MANY)
        answer = AnswerInput(value, text, by, digest)
        answered = answering.record_answer(project, item.id, answer)
        return after_decision(project, display, answered, "answered", resume_now=resume_now)


_TOO_MANY = 'too many arguments; put an answer of several words in "quotes"'


def _parse(words: tuple[str, ...], file: Path | None) -> tuple[str | None, str | list[str]]:
    """Returns the request or run, and the answer: a text, or a list of answers to questions."""
    if file is not None:
        if len(words) > 1:
            raise click.UsageError("give VALUE or --file, not both")
        return (words[0] if words else None), cli.read_text_file(file)
    # No run has a name with a "=", so this is an answer already.
    named = len(words) > 1 and "=" not in words[0]
    where, values = (words[0], words[1:]) if named else (None, words)
    match values:
        case ():
            raise click.UsageError("the answer is missing; give VALUE, - or --file")
        case ("-",):
            return where, sys.stdin.read()
        case (value,):
            return where, value
        case several if all("=" in each for each in several):
            return where, list(several)
        case _:
            raise click.UsageError(_TOO_MANY)


def decision_command(verb: str, *, yes: bool, text: str) -> click.Command:
    """Returns the `approve` or the `reject` command; `text` is its help."""
    examples = f"""\b
Examples:
  signoff {verb}                          the latest run's only request
  signoff {verb} 7 --why "..." --resume
  signoff {verb} first-try --digest 3f2a9c01b7de
"""

    @click.command(help=text, epilog=examples)
    @click.argument(
        "where", required=False, metavar="[REQUEST|RUN]", shell_complete=cli.complete_run
    )
    @click.option("--why", "--text", "why", default="", help="The reason, which is recorded.")
    @cli.answer_options
    @cli.progress_options
    def command(
        where: str | None,
        why: str,
        by: str,
        digest: str | None,
        resume_now: bool,
        limits: dict[str, str],
        display: DisplayOptions,
    ) -> int:
        with cli.open_here(limits=limits, drives=resume_now) as project:
            item = answering.find_item(project, where)
            if not (yes or why) and display.may_ask:
                # Without a reason, the next one to work on it can only guess.
                why = click.prompt("Why", default="", show_default=False, err=True)
            answer = AnswerInput(None, why, by, digest)
            decided = answering.decide(project, item.id, answer, yes=yes)
            status = "approved" if yes else "rejected"
            return after_decision(project, display, decided, status, resume_now=resume_now)

    return command


def after_decision(
    project: Project, display: DisplayOptions, item: InboxItem, status: str, *, resume_now: bool
) -> int:
    """Reports an answer that was just recorded, or resumes its run; returns the exit code."""
    out = display.out
    if resume_now:
        out.note(f"{status} #{item.id}")
        return drive_resume(project, display, project.run(item.run))
    # A worker continues such a run at once; any other waits for its user, who may want to answer
    # more.
    handed_over = wake_if_handed_over(project, item.run)
    catch_up(project, item.run, out.warn)
    remaining = len(project.store.items(item.run))
    if out.as_json:
        out.json({**answering.request_to_json(project, item), "open": remaining})
        return exits.OK
    out.line(f"{status} #{item.id}  {item.run}")
    more = f"{remaining} more to answer: signoff inbox {item.run}; " if remaining else ""
    if handed_over:
        out.note(f"{more}a worker continues it; follow it: signoff logs -f {item.run}")
    else:
        out.note(f"{more}to continue it, run: signoff resume {item.run}")
    return exits.OK


approve_command = decision_command(
    "approve",
    yes=True,
    text="""Approve a request: yes to exactly what was shown.

    An approval is bound to the digest of the content. If the content or its file has
    changed since, the approval is refused; look at the request again.
    """,
)


reject_command = decision_command(
    "reject",
    yes=False,
    text="""Reject a request: no to what was shown.

    The workflow gets the reason and decides how to proceed.
    """,
)
