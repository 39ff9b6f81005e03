"""Draws the open findings after each round as a small plot, one letter per finding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from signoff.core.severity import Severity
from signoff.core.words import CHANGES, Label

BAR = 16
"""The longest row of letters; with more findings, one letter represents several (`x3`).

With its indent the plot fits a terminal of 60 columns.
"""
MOST_ROUNDS = 20
"""Rounds that are shown; of a longer run, the first and the last ones."""
_FIRST = 6
_WIDEST = 8
"""Characters of a heading; the words of a longer one stand above each other."""


def draw_plot(rounds: Sequence[Mapping[str, Any]]) -> str:
    """Returns a plot of at most 58 columns: the open findings by severity, and the changes."""
    if not rounds:
        return "no rounds were reviewed"
    per_letter = max(1, -(-max(map(_total, rounds)) // (BAR - len(Severity))))
    lines = [_line(summary, per_letter) for summary in rounds]
    if len(lines) > MOST_ROUNDS:
        omitted = len(lines) - MOST_ROUNDS
        lines[_FIRST : _FIRST + omitted] = [f"  ...  {omitted} more rounds"]
    return "\n".join([*_heading(per_letter), *lines])


def _heading(per_letter: int) -> Iterator[str]:
    letters = " ".join(severity.letter for severity in Severity)
    scale = letters if per_letter == 1 else f"{letters} x{per_letter}"
    headings = [wrap(each.words, _WIDEST) for each in CHANGES]
    for left in reversed(range(max(map(len, headings)))):
        start = "" if left else f"round  open  {scale}"
        words = (each[-1 - left] if left < len(each) else "" for each in headings)
        columns = (f"{word:>{_width(each)}}" for word, each in zip(words, CHANGES, strict=True))
        yield f"{start:<{13 + BAR}}{''.join(columns)}".rstrip()


def _line(summary: Mapping[str, Any], per_letter: int) -> str:
    bar = "".join(
        severity.letter * -(-_open(summary, severity) // per_letter) for severity in Severity
    )
    columns = "".join(f"{summary.get(each) or '.':>{_width(each)}}" for each in CHANGES)
    return f"{summary['round']:>5}  {_total(summary):>4}  {bar or '-':<{BAR}}{columns}"


def _width(label: Label) -> int:
    return max(4, *map(len, wrap(label.words, _WIDEST))) + 2


def _total(summary: Mapping[str, Any]) -> int:
    return sum(_open(summary, severity) for severity in Severity)


def _open(summary: Mapping[str, Any], severity: Severity) -> int:
    return int(summary["open"].get(severity.value, 0))
