"""An agent that knows nothing about skills: it does what the text in front of it says.

It runs the command that it is shown next, fills in each placeholder with its last choice, any word
for an open text, and takes the way of a passed review. As a reviewer it writes what it is told to
write, and records that every item passes.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from itertools import groupby
from pathlib import Path
from typing import Any

from signoff.core.effects import AgentRequest

Run = Callable[[Sequence[str]], str]
"""Runs a command of signoff, and returns what it printed."""

MOST_COMMANDS = 80

_HEADING = re.compile(r"^# (?:[\w-]+, step \d+ of \d+: )?(.+)$", re.MULTILINE)
_NEXT = re.compile(
    r"^(?:When this step is done, run:|When it is done, run:|If it passes, run:|"
    r"When it is done, or cannot be done:)\n+ +(signoff .+)$",
    re.MULTILINE,
)
_SCRIPT = re.compile(
    r"^Run this and follow what it prints: signoff skill script (.+)$", re.MULTILINE
)
_FILE = re.compile(r"^Write (\S+) with this content:\n\n(.+?)\n\n", re.MULTILINE | re.DOTALL)
_RECORD = re.compile(r"^ +(signoff skill qr .+ --id )ID (--status PASS)$", re.MULTILINE)
_ITEM = re.compile(r"^\{.+\}$", re.MULTILINE)
_PLACEHOLDER = re.compile(r"<(?:[^<>|]*\|)*([^<>|]*)>")


def follow(command: str, run: Run) -> list[str]:
    """Runs a command, and those that are printed one after the other; returns every page."""
    pages: list[str] = []
    following: str | None = command
    while following is not None:
        assert len(pages) < MOST_COMMANDS, f"{command} does not come to an end"
        pages.append(run([filled(word) for word in shlex.split(following)[1:]]))
        review(pages[-1], run)
        found = _NEXT.search(pages[-1])
        following = found[1] if found is not None else None
    return pages


def answer(request: AgentRequest, run: Run) -> Any:
    """Returns what it answers when a run asks it itself."""
    review(request.prompt, run)
    form = request.about["form"]
    return {name: filled(value) for name, value in form.items()} if form else "done"


def filled(text: str) -> str:
    """Returns a text whose placeholders are filled in."""
    return _PLACEHOLDER.sub(r"\1", text)


def title_of(page: str) -> str | None:
    """Returns the title of the step that a page is about; None if it is about none."""
    found = _HEADING.search(page)
    return found[1] if found is not None else None


def titles_of(pages: Sequence[str]) -> list[str]:
    """Returns the titles of the steps in their order; a step that is repeated counts once."""
    titles = [title for title in map(title_of, pages) if title is not None]
    return [title for title, _ in groupby(titles)]


def review(page: str, run: Run) -> None:
    """Runs the script that a reviewer is told to run, and does what it prints."""
    script = _SCRIPT.search(page)
    if script is None:
        return
    module, *arguments = shlex.split(script[1])
    out = StringIO()
    with redirect_stdout(out):
        assert import_module(module).main(arguments) == 0
    printed = out.getvalue()
    if (file := _FILE.search(printed)) is not None:
        Path(file[1]).write_text(file[2])
    if (record := _RECORD.search(printed)) is not None:
        for item in map(json.loads, _ITEM.findall(printed)):
            run(shlex.split(f"{record[1]}{shlex.quote(item['id'])} {record[2]}")[1:])
