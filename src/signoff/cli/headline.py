"""A request to a person in one line, for lists."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from signoff.cli.text import moment, near, one_line
from signoff.core.requests import ItemState

WIDTH = 200


def headline(request: Mapping[str, Any]) -> str:
    """Returns what a request is about: its title, else how its prompt begins."""
    text = one_line(request.get("title") or request["prompt"])
    if len(text) <= WIDTH:
        return text
    words = text[:WIDTH].rpartition(" ")[0]
    # A path or an address may be longer than all that stands before it.
    return f"{words if len(words) > WIDTH // 2 else text[: WIDTH - 1]}…"


def where_more(request: Mapping[str, Any]) -> Iterator[str]:
    """Yields where the rest is, when there is more to see than its line shows, and its deadline."""
    if request["shown"] or headline(request) != one_line(request["prompt"]):
        yield f"details: signoff inbox {request['number']}"
        if request["prompt_file"]:
            yield f"prompt: {near(Path(request['prompt_file']))}"
    yield from at_deadline(request, time.time())


def at_deadline(request: Mapping[str, Any], now: float) -> Iterator[str]:
    """Yields until when a request can be answered, and what counts then."""
    deadline = request.get("deadline")
    if deadline is None or request["state"] != ItemState.OPEN:
        return
    if deadline > now:
        yield f"deadline: {moment(deadline)}, then {request['at_deadline']}"
    else:
        yield f"the deadline passed at {moment(deadline)}, and {request['at_deadline']}"
