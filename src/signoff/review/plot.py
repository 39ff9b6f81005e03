"""Draws the open findings after each round as a small plot, one letter per finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from signoff.review.severity import Severity

BAR = 16
"""The longest row of letters; with more findings, one letter represents several (`x3`).

With its indent the plot fits a terminal of 60 columns.
"""
MOST_ROUNDS = 20
"""Rounds that are shown; of a longer run, the first and the last ones."""
_FIRST = 6
_COLUMNS = {"new": "new", "introduced": "by a fix", "regressed": "back", "fixed": "fixed"}
"""The counts of a round, and their headings."""


def draw_plot(rounds: Sequence[Mapping[str, Any]]) -> str:
    """Returns a plot of at most 58 columns: the open findings by severity, and the changes."""
    if not rounds:
        return "no rounds were reviewed"
    per_letter = max(1, -(-max(map(_total, rounds)) // (BAR - len(Severity))))
    lines = [_line(summary, per_letter) for summary in rounds]
    if len(lines) > MOST_ROUNDS:
        omitted = len(lines) - MOST_ROUNDS
        lines[_FIRST : _FIRST + omitted] = [f"  ...  {omitted} more rounds"]
    return "\n".join([_heading(per_letter), *lines])


def _heading(per_letter: int) -> str:
    letters = " ".join(severity.letter for severity in Severity)
    scale = letters if per_letter == 1 else f"{letters} x{per_letter}"
    columns = "".join(f"{name:>{_width(name)}}" for name in _COLUMNS.values())
    return f"round  open  {scale:<{BAR}}{columns}"


def _line(summary: Mapping[str, Any], per_letter: int) -> str:
    bar = "".join(
        severity.letter * -(-_open(summary, severity) // per_letter) for severity in Severity
    )
    columns = "".join(
        f"{summary.get(key) or '.':>{_width(name)}}" for key, name in _COLUMNS.items()
    )
    return f"{summary['round']:>5}  {_total(summary):>4}  {bar or '-':<{BAR}}{columns}"


def _width(name: str) -> int:
    return max(len(name), 4) + 2


def _total(summary: Mapping[str, Any]) -> int:
    return sum(_open(summary, severity) for severity in Severity)


def _open(summary: Mapping[str, Any], severity: Severity) -> int:
    return int(summary["open"].get(severity.value, 0))
