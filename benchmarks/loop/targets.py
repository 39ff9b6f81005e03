"""What the loop should achieve, compared with the naive one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Sums = Mapping[str, float]


@dataclass(frozen=True)
class LoopTarget:
    """One goal: a figure computed from both loops, and its bound."""

    title: str
    bound: str
    value: Callable[[Sums, Sums], float]
    met: Callable[[float], bool]
    unit: str = ""

    def judged(self, naive: Sums, signoff: Sums) -> dict[str, Any]:
        """Returns the target with its value and whether it was met."""
        value = self.value(naive, signoff)
        return {
            "target": self.title,
            "bound": self.bound,
            "value": f"{value:g}{self.unit}",
            "met": self.met(value),
        }


def _saved(figure: str) -> Callable[[Sums, Sums], float]:
    def percent(naive: Sums, signoff: Sums) -> float:
        return round(100 * (1 - signoff[figure] / naive[figure]), 1)

    return percent


def _input_saved(naive: Sums, signoff: Sums) -> float:
    """Compares what is paid in full; what a cache holds costs a tenth to a half."""
    paid = [each["tokens_in"] - each["cached"] for each in (naive, signoff)]
    return round(100 * (1 - paid[1] / paid[0]), 1)


TARGETS = (
    LoopTarget("fewer input tokens than naive", "40 %", _input_saved, lambda x: x >= 40, " %"),
    LoopTarget("fewer calls than naive", "30 %", _saved("calls"), lambda x: x >= 30, " %"),
    LoopTarget(
        "defects left compared with naive",
        "at most 0",
        lambda naive, signoff: signoff["left"] - naive["left"],
        lambda x: x <= 0,
    ),
    LoopTarget(
        "approvals with a reported planted CRITICAL left",
        "0",
        lambda _naive, signoff: signoff["critical_reported"],
        lambda x: x == 0,
    ),
)
