"""Asks the person at the terminal what a run waits for.

What is shown is what is answered: the answer carries the digest of the request, so it
is refused if the content has changed in between.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from signoff.app.answering import Given, form_of, record_answer, title_of
from signoff.app.next_commands import message_of
from signoff.app.project import Project
from signoff.cli.clipboard import copy
from signoff.cli.headline import at_deadline
from signoff.cli.terminal import forget_typed
from signoff.cli.text import clean, wrapped
from signoff.core.digest import SHORT
from signoff.core.requests import ItemState, RequestKind, describe_default, options_of
from signoff.documents.control_characters import json_text
from signoff.documents.regular_files import read_regular
from signoff.errors import InvalidAnswer, StaleApproval
from signoff.runtime.store_port import InboxItem
from signoff.store.rundir.files import HITL
from signoff.store.rundir.questions import prompt_name

SHOWN_LINES = 30
"""Lines of a content that are shown before a person asks for all of it."""

_CODES = {"yellow": "\x1b[33m", "red": "\x1b[31m", "dim": "\x1b[2m", "end": "\x1b[0m"}
_END = "."
_LATER = ("l", "later")


class AnswerLater(Exception):  # noqa: N818  # a person's choice, not a fault
    """The person leaves this one for later."""


@dataclass(frozen=True)
class PromptResult:
    """What came of asking a person."""

    answered: int = 0
    """How many requests have an answer now."""
    left: bool = False
    """Whether the person wants to be asked no more, by ctrl-c or ctrl-d."""


def ask_all(project: Project, items: Sequence[InboxItem]) -> PromptResult:
    """Asks for every request, or until the person leaves; what was answered is kept."""
    answered = 0
    forget_typed()
    for position, item in enumerate(items, 1):
        of = f" ({position} of {len(items)})" if len(items) > 1 else ""
        try:
            answered += _ask(project, item, of)
        except (click.Abort, KeyboardInterrupt):
            _say("")
            return PromptResult(answered, left=True)
    return PromptResult(answered)


def _ask(project: Project, item: InboxItem, of: str) -> bool:
    form = form_of(project, item)
    _say("")
    _say(f"#{item.id} {item.kind} from step {item.step}{of}", style="yellow")
    if title_of(form):
        _say(clean(title_of(form)))
    _show_prompt(item)
    _show(form)
    if _too_late(project, item, form):
        return False
    if item.kind == RequestKind.RESPONSE:
        _offer(project.folder(item.run) / HITL / prompt_name(item.id))
    return _answered(project, item, form)


def _answered(project: Project, item: InboxItem, form: dict[str, Any]) -> bool:
    """Asks until there is an answer that can be taken, or none is wanted any more."""
    while True:
        try:
            given = _KINDS[item.kind](item, form)
            record_answer(project, item.id, given)
        except AnswerLater:
            return False
        except InvalidAnswer as error:
            _say(f"  {message_of(error)}", style="red")
            state = project.store.item(item.id).state
            if state != ItemState.OPEN:
                # Somebody was quicker, at another terminal; with their answer the run can go on.
                return state in (ItemState.ANSWERED, ItemState.USED)
            if item.deadline is not None and item.deadline <= project.clock.now():
                return False
        except StaleApproval as error:
            _say(f"  {message_of(error)}", style="red")
            return False
        else:
            return True


def _too_late(project: Project, item: InboxItem, form: dict[str, Any]) -> bool:
    """Says until when an answer counts, and tells whether that time has passed."""
    if item.deadline is None:
        return False
    now = project.clock.now()
    request = {
        "deadline": item.deadline,
        "state": ItemState.OPEN,
        "at_deadline": describe_default(form),
    }
    for line in at_deadline(request, now):
        _say(f"  {line}", style="yellow")
    return item.deadline <= now


def _approval(item: InboxItem, form: dict[str, Any]) -> Given:
    while True:
        said = _line(f"approve {item.digest[:SHORT]}? [y]es / [n]o / [v]iew all / [l]ater")
        if said in ("y", "yes", "approve"):
            return Given(True, _line("reason (optional)", empty=True), digest=item.digest)
        if said in ("n", "no", "reject"):
            return Given(False, _line("what is wrong (optional)", empty=True), digest=item.digest)
        if said in ("v", "view"):
            _show(form, whole=True)
        elif said in _LATER:
            raise AnswerLater


def _choice(item: InboxItem, form: dict[str, Any]) -> Given:
    options = options_of(form)
    for number, option in enumerate(options, 1):
        needs = "  (needs a reason)" if option.get("requires_input") else ""
        _say(f"  {number}  {clean(option['label'])}{needs}")
    said = _line(f"choose 1-{len(options)}, or [l]ater")
    labels = [str(option["label"]) for option in options]
    if said in _LATER and said not in labels:
        raise AnswerLater
    chosen = labels[int(said) - 1] if said.isdecimal() and 1 <= int(said) <= len(labels) else said
    needs_text = any(o["label"] == chosen and o.get("requires_input") for o in options)
    return Given(chosen, _line("reason") if needs_text else "", digest=item.digest)


def _question(item: InboxItem, _form: dict[str, Any]) -> Given:
    said = _line("answer (empty for later)", empty=True)
    if not said:
        raise AnswerLater
    return Given(said, digest=item.digest)


def _response(item: InboxItem, _form: dict[str, Any]) -> Given:
    _say(f"paste the response, then a line with only {_END!r};", style="dim")
    _say("@FILE reads a file; an empty response means later", style="dim")
    lines: list[str] = []
    for line in sys.stdin:
        if line.rstrip("\r\n") == _END:
            break
        lines.append(line)
    else:
        if not lines:
            # Ctrl-d before anything was typed, as at every other prompt.
            raise click.Abort
    text = "".join(lines)
    if not text.strip():
        raise AnswerLater
    if text.startswith("@") and len(lines) == 1:
        return Given(_read(text[1:].strip()), digest=item.digest)
    return Given(text, digest=item.digest)


_KINDS: Mapping[RequestKind, Callable[[InboxItem, dict[str, Any]], Given]] = {
    RequestKind.APPROVAL: _approval,
    RequestKind.CHOICE: _choice,
    RequestKind.QUESTION: _question,
    RequestKind.RESPONSE: _response,
}


def _show_prompt(item: InboxItem) -> None:
    lines = clean(item.prompt).splitlines()
    left = f"{len(lines) - SHOWN_LINES} more lines: signoff inbox {item.id}"
    cut = len(lines) > SHOWN_LINES
    # A prompt for an agent begins with what holds for every task; what is to be done comes last.
    at_end = item.kind == RequestKind.RESPONSE
    if cut and at_end:
        _say(f"{left} …", style="dim")
    for line in lines[-SHOWN_LINES:] if at_end else lines[:SHOWN_LINES]:
        _say(wrapped(line))
    if cut and not at_end:
        _say(f"… {left}", style="dim")


def _offer(prompt: Path) -> None:
    """Says where the whole prompt stands, and copies it for a chat window where that goes."""
    if not prompt.is_file():
        return
    copied = sys.stdout.isatty() and copy(prompt.read_text(encoding="utf-8", errors="replace"))
    _say(f"full prompt{' (copied to the clipboard)' if copied else ''}: {prompt}", style="dim")


def _show(form: dict[str, Any], *, whole: bool = False) -> None:
    for name, value in (form.get("shown") or {}).items():
        if value is None:
            continue
        text = clean(value if isinstance(value, str) else _pretty(value))
        lines = text.splitlines()
        shown = lines if whole else lines[:SHOWN_LINES]
        _say("")
        if name != "content":
            _say(f"{name}:", style="dim")
        for line in shown:
            _say(f"  │ {line}")
        if len(shown) < len(lines):
            _say(f"  │ … {len(lines) - len(shown)} more lines", style="dim")
    if form.get("path"):
        _say(f"  file: {clean(form['path'])}", style="dim")


def _pretty(value: Any) -> str:
    return json_text(value, indent=2)


def _read(path: str) -> str:
    try:
        return read_regular(Path(path).expanduser(), None, follow=True).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidAnswer(f"cannot read {path}: {error}") from error


def _line(prompt: str, *, empty: bool = False) -> str:
    default = "" if empty else None
    said = click.prompt(prompt, default=default, show_default=False, err=True, prompt_suffix=": ")
    return str(said).strip()


def _say(text: str, style: str = "") -> None:
    if style and not os.environ.get("NO_COLOR"):
        text = f"{_CODES[style]}{text}{_CODES['end']}"
    click.echo(text, err=True)
