"""What the loop should achieve, compared with the naive one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
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

    def judged(self, pairs: Sequence[tuple[Sums, Sums]]) -> dict[str, Any]:
        """Returns the target with its mean value over pairs of sums, and whether that meets it.

        A pair has the sums of the naive loop and of signoff with one seed.
        """
        values = [self.value(naive, signoff) for naive, signoff in pairs]
        mean = sum(values) / len(values)
        figures = {"mean": mean, "min": min(values), "max": max(values)}
        texts = {name: f"{round(value, 1):g}{self.unit}" for name, value in figures.items()}
        return {"target": self.title, "bound": self.bound, **texts, "met": self.met(mean)}


def _saved(figure: Callable[[Sums], float]) -> Callable[[Sums, Sums], float]:
    def percent(naive: Sums, signoff: Sums) -> float:
        return 100 * (1 - figure(signoff) / figure(naive))

    return percent


CACHE_PRICE = 0.1
"""What a cached input token costs, compared with another one: a common price."""


def input_price(sums: Sums) -> float:
    """Returns what the input costs, in tokens at the full price."""
    return sums["tokens_in"] - (1 - CACHE_PRICE) * sums["cached"]


TARGETS = (
    LoopTarget(
        "fewer input tokens than naive, a cached one counted as a tenth",
        "40 %",
        _saved(input_price),
        lambda x: x >= 40,
        " %",
    ),
    LoopTarget(
        "fewer input tokens than naive, a cached one counted as one",
        "40 %",
        _saved(itemgetter("tokens_in")),
        lambda x: x >= 40,
        " %",
    ),
    LoopTarget(
        "fewer calls than naive", "30 %", _saved(itemgetter("calls")), lambda x: x >= 30, " %"
    ),
    LoopTarget(
        "defects left compared with naive",
        "at most 0",
        lambda naive, signoff: signoff["left"] - naive["left"],
        lambda x: x <= 0,
    ),
    LoopTarget(
        "passed with a reported planted CRITICAL left",
        "0",
        lambda _naive, signoff: signoff["critical_reported"],
        lambda x: x == 0,
    ),
)
