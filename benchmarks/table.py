"""Prints figures as a table that is readable on a terminal and valid Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns the lines of an aligned table; all but the first two columns are right-aligned."""
    wide = [max(len(line[i]) for line in [head, *rows]) for i in range(len(head))]
    rule = ["-" * w if i < 2 else "-" * (w - 1) + ":" for i, w in enumerate(wide)]
    return "\n".join(_line(line, wide) for line in (head, rule, *rows))


def _line(cells: Sequence[str], wide: Sequence[int]) -> str:
    sized = enumerate(zip(cells, wide, strict=True))
    padded = [cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in sized]
    return f"| {' | '.join(padded)} |"


def number(value: float | None, unit: str = "") -> str:
    """Returns a figure with its significant digits."""
    if value is None:
        return ""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{digits}f} {unit}".rstrip()


def times(value: float | None) -> str:
    """Returns a ratio."""
    return "" if value is None else f"{value:,.0f} x" if value >= 100 else f"{value:.2f} x"
