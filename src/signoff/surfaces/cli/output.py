"""Where a command's results go: stdout for what was asked for, stderr for everything else.

Also the terminal's keyboard (no echo while a view draws, no stale input at prompts), and what makes
untrusted text safe and readable on a terminal.

With `--json`, stdout carries one JSON document and nothing else. On a terminal, lines are
colored and tables fit its width; anywhere else they are plain and complete.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from signoff.documents.control_characters import json_text

if TYPE_CHECKING:
    from signoff.app.settings.project import Project


LAST_WIDTH = 8
"""The minimum width of a table's last column."""
READABLE_WIDTH = 20
"""Its minimum width while other columns can still be dropped: it often holds reasons."""

STYLES: Mapping[str, str] = {
    "queued": "cyan",
    "running": "cyan",
    "waiting": "yellow",
    "parked": "yellow",
    "interrupted": "yellow",
    "completed": "green",
    "failed": "red",
    "round_limit": "red",
    "budget": "red",
    "not_converging": "red",
    "findings_open": "red",
    "incomplete": "red",
    "rejected": "red",
    "cancelled": "dim",
}
"""The color of each status."""


@dataclass(frozen=True)
class Output:
    """Prints the results of a command, as text or as JSON."""

    as_json: bool = False
    quiet: bool = False
    verbose: bool = False
    results: TextIO | None = None
    """The stream for JSON while stdout is reserved for it."""

    @property
    def pretty(self) -> bool:
        """Whether stdout is a terminal that people look at."""
        return is_terminal(sys.stdout)

    def json(self, value: Any) -> None:
        """Prints the one JSON document."""
        print(json_text(value, indent=2, default=str), file=self.results)

    def show(self, document: Any, *lines: str) -> None:
        """Prints a result: its document with `--json`, else these lines."""
        if self.as_json:
            self.json(document)
        else:
            for line in lines:
                self.line(line)

    def listing(
        self,
        documents: Any,
        columns: Sequence[str],
        rows: Sequence[Sequence[object]],
        none: str = "",
        **how: Any,
    ) -> None:
        """Prints a list: as documents with `--json`, else as a table; `none` if it is empty."""
        if self.as_json:
            self.json(documents)
        elif rows or not none:
            self.table(columns, rows, **how)
        else:
            self.line(none)

    def json_line(self, value: Any) -> None:
        """Prints one of many JSON objects, each on its own line."""
        print(json_text(value, default=str), file=self.results, flush=True)

    def line(self, text: str = "", style: str = "") -> None:
        """Prints a result line; `style` is used only on a terminal."""
        print(styled(clean(text), style) if self.pretty else clean(text))

    def prose(self, text: str, style: str = "", hang: str = "") -> None:
        """Prints text that wraps between words on a terminal; for prose, not for commands."""
        self.line(wrapped(clean(text), hang) if self.pretty else text, style)

    def note(self, text: str) -> None:
        """Prints a hint to stderr, unless the output is quiet."""
        if not self.quiet:
            print(clean(text), file=sys.stderr)

    def warn(self, text: str) -> None:
        """Prints a warning to stderr, even if the output is quiet."""
        print(f"warning: {clean(text)}", file=sys.stderr)

    def table(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[object]],
        styles: Mapping[str, Mapping[str, str]] | None = None,
        spare: Sequence[str] = (),
    ) -> None:
        """Prints rows under headings; `styles` maps the values of a column to colors.

        `spare` columns are left out, first one first, when the terminal is too narrow.
        """
        table = [list(columns), *([one_line(cell) for cell in row] for row in rows)]
        if self.pretty:
            table = _fit(table, spare, terminal_width())
        headings, widths = table[0], [*_widths(table)[:-1], 0]
        colors = [(styles or {}).get(name, {}) for name in headings]
        for row in table:
            cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]
            if self.pretty:
                marks = [color.get(cell, "") for color, cell in zip(colors, row, strict=True)]
                cells = list(map(styled, cells, marks))
            line = "  ".join(cells).rstrip()
            print(styled(line, "dim") if self.pretty and row is headings else line)


@dataclass(frozen=True)
class DisplayOptions:
    """How progress is shown and whether the user is asked."""

    out: Output
    no_input: bool = False
    events: Path | None = None
    """The file that all events are appended to."""
    report: Callable[[Project, str], int] | None = None
    """Prints how the run of a name stopped, and returns the exit code; None for the usual way."""

    @property
    def may_ask(self) -> bool:
        """Whether requests may be asked on the terminal."""
        terminal = has_keyboard() and is_terminal(sys.stderr)
        return terminal and not self.no_input and not self.out.as_json


@contextmanager
def reserved_stdout() -> Iterator[TextIO]:
    """Reserves stdout for one document: all other output goes to stderr.

    The file descriptor is redirected too, so that programs started by a handler cannot
    write into the document.
    """
    own = sys.stdout
    with redirect_stdout(sys.stderr):
        try:
            number, elsewhere = own.fileno(), sys.stderr.fileno()
        except OSError:
            # Without a file descriptor, no other program can print to it.
            yield own
            return
        own.flush()
        copy = os.dup(number)
        os.dup2(elsewhere, number)
        results = open(copy, "w", encoding=own.encoding, errors=own.errors, closefd=False)  # noqa: SIM115
        try:
            # A reader that closed the pipe (`| head`) does not change the result of the command.
            with suppress(BrokenPipeError), results:
                yield results
        finally:
            os.dup2(copy, number)
            os.close(copy)


def is_terminal(stream: Any) -> bool:
    """Tells whether a stream is a terminal that supports UTF-8 and cursor movement."""
    draws = (stream.encoding or "").lower().startswith("utf")
    return bool(stream.isatty()) and draws and os.environ.get("TERM") != "dumb"


def _fit(table: list[list[str]], spare: Sequence[str], width: int) -> list[list[str]]:
    """Drops spare columns until the rest fits, then cuts the last column."""
    for name in spare:
        *others, last = _widths(table)
        if sum(others) + 2 * len(others) + min(last, READABLE_WIDTH) <= width:
            break
        gone = table[0].index(name)
        table = [[*row[:gone], *row[gone + 1 :]] for row in table]
    *others, last = _widths(table)
    left = width - sum(others) - 2 * len(others)
    if left < min(last, LAST_WIDTH):
        # Names are meant to be copied, so a wrapped line is better than a truncated name.
        return table
    return [[*row[:-1], one_line(row[-1], left)] for row in table]


def _widths(table: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*table, strict=True)]


try:
    import termios
except ImportError:  # Windows: its console echoes only what is read
    termios = None  # type: ignore[assignment]  # checked before each use


SHOW_CURSOR = b"\x1b[?25h"


def has_keyboard() -> bool:
    """Tells whether the user can type here.

    A background job must not touch the terminal: changing its settings would stop the
    process without a message.
    """
    return in_foreground(sys.stdin)


def in_foreground(stream: Any) -> bool:
    """Tells whether a stream is a terminal and this process is in its foreground."""
    try:
        if stream is None or not stream.isatty():
            return False
        front = os.tcgetpgrp(stream.fileno())
    except ValueError:
        return False  # closed
    except (AttributeError, OSError):
        return True  # a terminal without job control has no background
    return front == os.getpgrp()


class Keyboard:
    """Turns the echo off while a view draws, so that typed characters do not appear in it.

    Whoever restores it also gets the cursor back: the view may have been killed while it drew.
    """

    def __init__(self) -> None:
        self._before: list[Any] | None = None

    def mute(self) -> None:
        """Stops the echo; ctrl-c still works."""
        if termios is None or not has_keyboard():
            return
        with suppress(termios.error, OSError):
            self._before = termios.tcgetattr(sys.stdin)
            quiet = list(self._before)
            quiet[3] &= ~termios.ECHO
            termios.tcsetattr(sys.stdin, termios.TCSANOW, quiet)

    def restore(self) -> None:
        """Restores the terminal's settings; safe to call from a signal handler."""
        if termios is None or self._before is None or not has_keyboard():
            return
        with suppress(termios.error, OSError):
            termios.tcsetattr(sys.stdin, termios.TCSANOW, self._before)
        self._before = None
        # Not through `sys.stderr`, which refuses to be entered twice.
        os.write(2, SHOW_CURSOR)


def discard_typed() -> None:
    """Discards what was typed before the question appeared."""
    if termios is None or not has_keyboard():
        return
    with suppress(termios.error, OSError):
        termios.tcflush(sys.stdin, termios.TCIFLUSH)


def read_key(prompt: str) -> str:
    """Prints a prompt and returns the key that is pressed; what was typed before is discarded."""
    if termios is None:
        import click

        click.echo(prompt, err=True, nl=False)
        return click.getchar()
    before = termios.tcgetattr(sys.stdin)
    raw = list(before)
    raw[3] &= ~(termios.ECHO | termios.ICANON)
    # Before the prompt: whoever answers it at once must not lose the key.
    termios.tcsetattr(sys.stdin, termios.TCSAFLUSH, raw)
    try:
        print(prompt, end="", file=sys.stderr, flush=True)
        return os.read(sys.stdin.fileno(), 1).decode("ascii", "replace")
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


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
