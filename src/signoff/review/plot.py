"""The story of a run as a small plot: what was open after each round, one letter each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from signoff.review.severity import Severity

BAR = 36
"""Letters at most; with more findings one letter stands for several."""
MOST_ROUNDS = 20
"""Rounds shown; of a longer run, the first and the last ones."""
_FIRST = 6
_COLUMNS = {"new": "new", "introduced": "by a fix", "regressed": "back", "fixed": "fixed"}
"""What happened in a round, and what it is called in the heading."""


def draw_plot(rounds: Sequence[Mapping[str, Any]]) -> str:
    """Returns lines of at most 80 columns: what was open by severity, and what had happened."""
    if not rounds:
        return "no round was reviewed"
    per_letter = max(1, -(-max(_total(each) for each in rounds) // (BAR - len(Severity))))
    shown = [_line(each, per_letter) for each in rounds]
    if len(shown) > MOST_ROUNDS:
        left_out = len(shown) - MOST_ROUNDS
        shown[_FIRST : _FIRST + left_out] = [f"  ...  {left_out} more rounds"]
    return "\n".join([_heading(per_letter), *shown])


def _heading(per_letter: int) -> str:
    letters = " ".join(severity.letter for severity in Severity)
    scale = letters if per_letter == 1 else f"{letters}, a letter for {per_letter}"
    columns = "".join(f"{name:>{_width(name)}}" for name in _COLUMNS.values())
    return f"round  open  {scale:<{BAR}}{columns}"


def _line(counted: Mapping[str, Any], per_letter: int) -> str:
    bar = "".join(
        severity.letter * -(-_open(counted, severity) // per_letter) for severity in Severity
    )
    columns = "".join(
        f"{counted.get(key) or '.':>{_width(name)}}" for key, name in _COLUMNS.items()
    )
    return f"{counted['iteration']:>5}  {_total(counted):>4}  {bar or '-':<{BAR}}{columns}"


def _width(name: str) -> int:
    return max(len(name), 4) + 2


def _total(counted: Mapping[str, Any]) -> int:
    return sum(_open(counted, severity) for severity in Severity)


def _open(counted: Mapping[str, Any], severity: Severity) -> int:
    return int(counted["open"].get(severity.value, 0))
