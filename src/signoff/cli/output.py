"""Where a command's results go: stdout for what was asked for, stderr for everything else.

With `--json`, stdout carries one JSON document and nothing else. On a terminal, tables
are drawn by rich; anywhere else they are plain, complete lines.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from signoff.cli.terminal import has_keyboard
from signoff.cli.text import clean, one_line, terminal_width, wrapped
from signoff.documents.control_characters import json_text

LAST_WIDTH = 8
"""The minimum width of a table's last column."""
READABLE_WIDTH = 20
"""Its minimum width while other columns can still be dropped: it often holds reasons."""

STYLES: Mapping[str, str] = {
    "running": "cyan",
    "waiting": "yellow",
    "parked": "yellow",
    "interrupted": "yellow",
    "completed": "green",
    "failed": "red",
    "iteration_limit": "red",
    "budget": "red",
    "not_converging": "red",
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

    def json_line(self, value: Any) -> None:
        """Prints one of many JSON objects, each on its own line."""
        text = json_text(value, default=str)
        print(text, file=self.results, flush=True)

    def line(self, text: str = "", style: str = "") -> None:
        """Prints a result line; `style` is used only on a terminal."""
        if style and self.pretty:
            _styled(text, style)
        else:
            print(clean(text))

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
        cells = [[one_line(cell) for cell in row] for row in rows]
        if self.pretty:
            _rich_table(*_fitting(columns, cells, spare), styles or {})
        else:
            _plain_table(columns, cells)


@dataclass(frozen=True)
class DisplayOptions:
    """How progress is shown and whether the user is asked."""

    out: Output
    no_input: bool = False
    events: Path | None = None
    """The file that all events are appended to."""

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
        kept = os.dup(number)
        os.dup2(elsewhere, number)
        results = open(kept, "w", encoding=own.encoding, errors=own.errors, closefd=False)  # noqa: SIM115
        try:
            # A reader that closed the pipe (`| head`) does not change the result of the command.
            with suppress(BrokenPipeError), results:
                yield results
        finally:
            os.dup2(kept, number)
            os.close(kept)


def is_terminal(stream: Any) -> bool:
    """Tells whether a stream is a terminal that supports UTF-8 and cursor movement."""
    draws = (stream.encoding or "").lower().startswith("utf")
    return bool(stream.isatty()) and draws and os.environ.get("TERM") != "dumb"


def _styled(text: str, style: str) -> None:
    from rich.console import Console
    from rich.text import Text

    Console(highlight=False).print(Text(clean(text), style=style), soft_wrap=True)


def _plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = _widths(columns, rows)
    for row in (columns, *rows):
        print("  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip())


def _fitting(
    columns: Sequence[str], rows: Sequence[Sequence[str]], spare: Sequence[str]
) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Drops spare columns until the rest fits; the last column may be cut."""
    for name in spare:
        if _least_width(columns, rows, READABLE_WIDTH) <= terminal_width():
            break
        gone = columns.index(name)
        columns = [*columns[:gone], *columns[gone + 1 :]]
        rows = [[*row[:gone], *row[gone + 1 :]] for row in rows]
    return columns, rows


def _least_width(columns: Sequence[str], rows: Sequence[Sequence[str]], last: int) -> int:
    *whole, wished = _widths(columns, rows)
    return sum(whole) + 2 * len(columns) + min(last, wished)


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(columns, *rows, strict=True)]


def _rich_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    styles: Mapping[str, Mapping[str, str]],
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if _least_width(columns, rows, LAST_WIDTH) > terminal_width():
        # Names are meant to be copied, so a wrapped line is better than a truncated name.
        _plain_table(columns, rows)
        return
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    *whole, last = _widths(columns, rows)
    for column, width in zip(columns[:-1], whole, strict=True):
        table.add_column(column, no_wrap=True, width=width)
    left = terminal_width() - sum(whole) - 2 * len(columns)
    table.add_column(columns[-1], overflow="ellipsis", no_wrap=True, width=min(last, left))
    for row in rows:
        cells = [
            Text(cell, style=styles.get(column, {}).get(cell, ""))
            for column, cell in zip(columns, row, strict=True)
        ]
        table.add_row(*cells)
    Console(highlight=False).print(table)
