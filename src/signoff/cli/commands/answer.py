"""`signoff answer`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from signoff.app.answering import AnswerInput, find_item, record_answer, refuse_reference_as_answer
from signoff.app.history import form_of
from signoff.cli.decisions import after_decision
from signoff.cli.options import (
    CliCommand,
    answer_options,
    open_here,
    progress_options,
    read_text_file,
)
from signoff.cli.output import DisplayOptions


@click.command(cls=CliCommand)
@click.argument("words", nargs=-1, metavar="[REQUEST|RUN] [VALUE | HEADER=LABEL ...]")
@click.option("--file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Read the answer from a file.")  # fmt: skip
@click.option("--text", "--why", "text", default="", help="A comment or reason.")
@answer_options
@progress_options
def command(
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
    with open_here(limits=limits, drives=resume_now) as project:
        if where is None and words and words[0] != "-":
            refuse_reference_as_answer(project, words[0])
        item = find_item(project, where)
        if isinstance(value, list) and not form_of(project, item).get("questions"):
            raise click.UsageError(_TOO_MANY)
        answered = record_answer(project, item.id, AnswerInput(value, text, by, digest))
        return after_decision(project, display, answered, "answered", resume_now=resume_now)


_TOO_MANY = 'too many arguments; put an answer of several words in "quotes"'


def _parse(words: tuple[str, ...], file: Path | None) -> tuple[str | None, str | list[str]]:
    """Returns the request or run, and the answer: a text, or a list of answers to questions."""
    if file is not None:
        if len(words) > 1:
            raise click.UsageError("give VALUE or --file, not both")
        return (words[0] if words else None), read_text_file(file)
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
