"""Makes untrusted text safe and readable on a terminal."""

from __future__ import annotations

import os
import re
import shutil
import textwrap
import time
from pathlib import Path

# Everything a terminal interprets instead of showing: escape sequences could rewrite what
# the user believes to be approving. Bidirectional marks can do the same.
_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|"
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)

_COLORS = {"dim": 2, "red": 31, "green": 32, "yellow": 33, "cyan": 36}

NARROWEST = 20
"""The minimum width in columns; anything narrower is unreadable."""


def clean(text: object) -> str:
    """Returns a text without terminal control sequences; line breaks and tabs stay."""
    return _CONTROL.sub("", str(text).replace("\r\n", "\n"))


def styled(text: str, style: str) -> str:
    """Returns a text in a color, unless the user does not want any (`NO_COLOR`)."""
    if not style or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[{_COLORS[style]}m{text}\x1b[0m"


def one_line(text: object, width: int = 0) -> str:
    """Returns a text on one line, cut to a width unless that is 0."""
    flat = " ".join(clean(text).split())
    return flat if not width or len(flat) <= width else f"{flat[: max(1, width - 1)]}…"


def wrapped(text: str, hang: str = "") -> str:
    """Returns a text in lines that fit the terminal, broken between words.

    Lines that follow a broken one begin with `hang`.
    """
    width = max(NARROWEST, terminal_width())
    lines = []
    for line in text.splitlines():
        fits = textwrap.wrap(
            line, width, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False
        )
        lines += fits or [""]
    return "\n".join(lines)


def near(path: Path) -> str:
    """Returns a path relative to the current folder, if it is inside it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def ago(then: float, now: float) -> str:
    """Returns roughly how long ago a time was, such as `5m ago`."""
    return f"{_roughly(now - then)} ago"


def ahead(then: float, now: float) -> str:
    """Returns roughly how far away a time is, and the time itself; `due` if it has passed."""
    when = f"in {_roughly(then - now)}" if then > now else "due"
    return f"{when} ({moment(then)})"


def moment(at: float) -> str:
    """Returns a local time with its offset from UTC."""
    local = time.localtime(at)
    zone = time.strftime("%z", local)
    away = f"{zone[:3]}:{zone[3:5]}" if zone.strip("+-0") else "UTC"
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', local)} {away}"


def _roughly(seconds: float) -> str:
    whole = max(0, int(seconds))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if whole >= size:
            return f"{whole // size}{unit}"
    return f"{whole}s"


def terminal_width() -> int:
    """Returns how wide the terminal is."""
    return shutil.get_terminal_size().columns
