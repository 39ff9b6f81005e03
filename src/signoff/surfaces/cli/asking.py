"""Asks the user at the terminal for the answers that a run is waiting for.

An answer carries the digest of what was shown, so it is refused if the content has
changed in between.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, assert_never

import click

from signoff.app.people.answering import AnswerInput, record_answer, title_of
from signoff.app.runs.history import form_of
from signoff.app.runs.next_commands import error_message
from signoff.app.settings.project import Project
from signoff.core import requests
from signoff.core.digest import SHORT
from signoff.core.errors import InvalidAnswer, PresenceRequired, StaleApproval
from signoff.core.questions import UserQuestion, check_answers, one_of, questions_of
from signoff.core.requests import AnswerForm
from signoff.documents.regular_files import read_regular
from signoff.runtime.store_port import InboxItem
from signoff.store.run_files import HITL, file_path
from signoff.surfaces.cli.output import clean, discard_typed, near, styled, wrapped
from signoff.surfaces.cli.summary import deadline_lines, file_line, option_line, shown_lines
from signoff.views.run_directory.answers import prompt_name

SHOWN_LINES = 30
"""Lines of content that are shown before the user asks for all of it."""

CLIPBOARD_SECONDS = 2.0
"""How long to wait for the clipboard program; without a display server it may hang."""

CLIPBOARDS = (
    ("", "pbcopy"),
    ("", "clip.exe"),
    ("WAYLAND_DISPLAY", "wl-copy"),
    ("DISPLAY", "xclip", "-selection", "clipboard"),
    ("DISPLAY", "xsel", "--clipboard", "--input"),
)
"""Programs that copy their standard input, each after the variable that its display needs."""

_END = "."
_LATER = ("l", "later")


class AnswerLater(Exception):  # noqa: N818  # the user's choice, not an error
    """The user wants to answer this request later."""


def ask_retry() -> bool:
    """Asks whether a step is tried again now; a user who leaves the prompt wants the shell back."""
    discard_typed()
    choices = click.Choice(["retry", "stop"])
    try:
        return bool(
            click.prompt("How to proceed?", type=choices, default="retry", err=True) == "retry"
        )
    except click.Abort:
        return False


def ask_all(project: Project, items: Sequence[InboxItem]) -> tuple[int, bool]:
    """Asks for every request until the user leaves; each answer is stored at once.

    Returns how many have an answer now, and whether the user left with ctrl-c or ctrl-d.
    """
    answered = 0
    discard_typed()
    for position, item in enumerate(items, 1):
        progress = f" ({position} of {len(items)})" if len(items) > 1 else ""
        try:
            answered += _ask(project, item, progress)
        except (click.Abort, KeyboardInterrupt):
            _print("")
            return answered, True
    return answered, False


def _ask(project: Project, item: InboxItem, progress: str) -> bool:
    form = form_of(project, item)
    if form.get("path"):
        # The recorded path starts in the run's folder; the user is somewhere else.
        form["path"] = near(file_path(project.folder(item.run), form["path"]))
    _print("")
    _print(
        f"#{item.id} {requests.request_word(form)} from step {item.step}{progress}", style="yellow"
    )
    if title_of(form):
        _print(clean(title_of(form)))
    _show_prompt(item)
    _show(form)
    if _past_deadline(project, item, form):
        return False
    if item.kind.answer_form is AnswerForm.WORK:
        _print_prompt_file(project.folder(item.run) / HITL / prompt_name(item.id))
    return _ask_until_answered(project, item, form)


def _ask_until_answered(project: Project, item: InboxItem, form: dict[str, Any]) -> bool:
    """Asks until an answer is accepted; returns False if the user wants to answer later."""
    while True:
        try:
            answer = _read_answer(item, form)
            record_answer(project, item.id, answer)
        except AnswerLater:
            return False
        except (StaleApproval, PresenceRequired) as error:
            _print(f"  {error_message(error)}", style="red")
            return False
        except InvalidAnswer as error:
            _print(f"  {error_message(error)}", style="red")
            state = project.store.item(item.id).state
            if state != requests.ItemState.OPEN:
                # Answered from another terminal meanwhile: the run can continue with that answer.
                return state in (requests.ItemState.ANSWERED, requests.ItemState.USED)
            if item.deadline is not None and item.deadline <= project.clock.now():
                return False
        else:
            return True


def _past_deadline(project: Project, item: InboxItem, form: dict[str, Any]) -> bool:
    """Prints the deadline of a request and returns whether it has passed."""
    if item.deadline is None:
        return False
    now = project.clock.now()
    request = {
        "deadline": item.deadline,
        "state": requests.ItemState.OPEN,
        "at_deadline": requests.describe_default(form),
    }
    for line in deadline_lines(request, now):
        _print(f"  {line}", style="yellow")
    return item.deadline <= now


def _read_answer(item: InboxItem, form: dict[str, Any]) -> AnswerInput:
    match item.kind.answer_form:
        case AnswerForm.DECISION:
            return _decision(item, form)
        case AnswerForm.PICK:
            return _pick(item, form)
        case AnswerForm.PICKS:
            return _picks(item, form)
        case AnswerForm.TEXT:
            return _text(item)
        case AnswerForm.WORK:
            return _work(item)
        case other:
            assert_never(other)


def _decision(item: InboxItem, form: dict[str, Any]) -> AnswerInput:
    while True:
        reply = _line(f"approve {item.digest[:SHORT]}? [y]es / [n]o / [v]iew all / [l]ater")
        if reply in ("y", "yes", "approve"):
            return AnswerInput(True, _line("reason (optional)", empty=True), digest=item.digest)
        if reply in ("n", "no", "reject"):
            return AnswerInput(
                False, _line("what is wrong (optional)", empty=True), digest=item.digest
            )
        if reply in _LATER:
            raise AnswerLater
        if reply in ("v", "view"):
            _show(form, whole=True)
            _show_file(form)
        else:
            _print(f"  unknown answer {clean(reply)!r}; type y, n, v or l", style="red")


def _pick(item: InboxItem, form: dict[str, Any]) -> AnswerInput:
    options = requests.options_of(form)
    _print_options(options)
    reply = _line(f"choose 1-{len(options)}, or [l]ater")
    labels = [str(option["label"]) for option in options]
    if reply in _LATER and reply not in labels:
        raise AnswerLater
    # The reason is asked for afterwards, so it is not missing yet.
    chosen = one_of(options, reply, text="later")
    needs_text = options[labels.index(chosen)].get("requires_input")
    return AnswerInput(chosen, _line("reason") if needs_text else "", digest=item.digest)


def _picks(item: InboxItem, form: dict[str, Any]) -> AnswerInput:
    """Asks one question after the other; the answers are recorded together."""
    answers: dict[str, str | list[str]] = {}
    reasons: list[str] = []
    for question in questions_of(form):
        _print("")
        _print(wrapped(f"{question.header}: {clean(question.text)}"))
        options = [option.to_json() for option in question.options]
        _print_options(options)
        answers |= _answer_to(question)
        chosen = answers[question.header]
        labels = [chosen] if isinstance(chosen, str) else chosen
        if any(each["requires_input"] and each["label"] in labels for each in options):
            reasons.append(_line("reason"))
    return AnswerInput(answers, "\n".join(reasons), digest=item.digest)


def _answer_to(question: UserQuestion) -> dict[str, str | list[str]]:
    many = f"one or more of 1-{len(question.options)}, such as 1,2"
    how_many = many if question.multi_select else f"1-{len(question.options)}"
    while True:
        reply = _line(f"choose {how_many}, or [l]ater")
        if reply in _LATER and reply not in question.labels:
            raise AnswerLater
        try:
            # The reason is asked for afterwards, so it is not missing yet.
            return check_answers([question], {question.header: reply}, text="later")
        except InvalidAnswer as error:
            _print(f"  {error_message(error)}", style="red")


def _print_options(options: Sequence[Mapping[str, Any]]) -> None:
    for number, option in enumerate(options, 1):
        needs = "  (needs a text)" if option.get("requires_input") else ""
        _print(wrapped(f"{option_line(option, f'{number} ')}{needs}", hang="     "))


def _text(item: InboxItem) -> AnswerInput:
    reply = _line("answer (empty for later)", empty=True)
    if not reply:
        raise AnswerLater
    return AnswerInput(reply, digest=item.digest)


def _work(item: InboxItem) -> AnswerInput:
    _print(f"paste the response, then a line with only {_END!r};", style="dim")
    _print("@FILE reads a file; an empty response means later", style="dim")
    lines: list[str] = []
    for line in sys.stdin:
        if line.rstrip("\r\n") == _END:
            break
        lines.append(line)
    else:
        if not lines:
            # Ctrl-d before any input leaves the prompt, as at every other prompt.
            raise click.Abort
    text = "".join(lines)
    if not text.strip():
        raise AnswerLater
    if text.startswith("@") and len(lines) == 1:
        return AnswerInput(_read(text[1:].strip()), digest=item.digest)
    return AnswerInput(text, digest=item.digest)


def _show_prompt(item: InboxItem) -> None:
    lines = clean(item.prompt).splitlines()
    remaining = f"{len(lines) - SHOWN_LINES} more lines: signoff inbox {item.id}"
    cut = len(lines) > SHOWN_LINES
    # A prompt written for an agent starts with general rules; the task itself comes last.
    at_end = item.kind.answer_form is AnswerForm.WORK
    if cut and at_end:
        _print(f"{remaining} …", style="dim")
    for line in lines[-SHOWN_LINES:] if at_end else lines[:SHOWN_LINES]:
        _print(wrapped(line))
    if cut and not at_end:
        _print(f"… {remaining}", style="dim")


def _print_prompt_file(prompt: Path) -> None:
    """Prints where the full prompt is, and copies it to the clipboard if there is one."""
    if not prompt.is_file():
        return
    copied = sys.stdout.isatty() and copy_to_clipboard(
        prompt.read_text(encoding="utf-8", errors="replace")
    )
    _print(f"full prompt{' (copied to the clipboard)' if copied else ''}: {prompt}", style="dim")


def _show(form: dict[str, Any], *, whole: bool = False) -> None:
    for line in shown_lines(form.get("shown"), None if whole else SHOWN_LINES):
        _print(f"  {line}")
    if form.get("path"):
        _print(f"  {file_line(form)}", style="dim")


def _show_file(form: dict[str, Any]) -> None:
    """Shows a file that the approver may edit: the request does not contain its text."""
    if form.get("edits") != requests.Edits.ACCEPT:
        return
    try:
        text = _read(form["path"])
    except InvalidAnswer as error:
        missing = not Path(form["path"]).exists()
        _print("  it does not exist yet" if missing else f"  {clean(str(error))}", style="yellow")
        return
    for line in clean(text).splitlines():
        _print(f"  │ {line}")


def _read(path: str) -> str:
    try:
        return read_regular(Path(path).expanduser(), None, follow=True).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidAnswer(f"cannot read {path}: {error}") from error


def _line(prompt: str, *, empty: bool = False) -> str:
    default = "" if empty else None
    reply = click.prompt(prompt, default=default, show_default=False, err=True, prompt_suffix=": ")
    return str(reply).strip()


def _print(text: str, style: str = "") -> None:
    click.echo(styled(text, style), err=True)


def copy_to_clipboard(text: str) -> bool:
    """Copies a text to the clipboard; returns whether that worked and never raises."""
    for variable, *argv in CLIPBOARDS:
        # A program without its display hangs, or complains in the middle of a prompt.
        if not (variable in os.environ or not variable) or shutil.which(argv[0]) is None:
            continue
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run(
                argv,
                input=text.encode("utf-8", "replace"),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=CLIPBOARD_SECONDS,
                check=True,
            )
            return True
    return False
