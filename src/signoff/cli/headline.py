"""A pending request in one line, for lists."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from signoff.cli.text import clean, moment, near, one_line
from signoff.core.requests import Edits, ItemState

WIDTH = 200


def headline(request: Mapping[str, Any]) -> str:
    """Returns a request's title, or the beginning of its prompt."""
    text = one_line(request.get("title") or request["prompt"])
    if len(text) <= WIDTH:
        return text
    words = text[:WIDTH].rpartition(" ")[0]
    # Cutting at a space would drop nearly everything if the text ends in a long path or URL.
    return f"{words if len(words) > WIDTH // 2 else text[: WIDTH - 1]}…"


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
