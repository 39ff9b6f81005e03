"""A request to a person in one line, for lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.cli.text import one_line

WIDTH = 200


def headline(request: Mapping[str, Any]) -> str:
    """Returns what a request is about: its title, else how its prompt begins."""
    return one_line(request.get("title") or request["prompt"], WIDTH)


def has_more(request: Mapping[str, Any]) -> bool:
    """Tells whether there is more to see than its line shows."""
    return bool(request["shown"]) or headline(request) != one_line(request["prompt"])
