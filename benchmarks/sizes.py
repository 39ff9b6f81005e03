"""The size of each workload, the same for every contestant."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """The sizes of the workloads."""

    steps: int = 200
    """W1: steps of the chain."""
    rounds: int = 20
    """W2: rounds of the review loop."""
    critics: int = 8
    """W2: critiques at the same time in each round."""
    items: int = 1000
    """W3: items of the fan-out."""
    runs: int = 500
    """W4: runs at the same time."""
    run_steps: int = 10
    """W4: steps of each of them."""
    gates: int = 2000
    """W5: runs that wait at a gate."""
    history: int = 2000
    """W7: steps of the long run."""

    @property
    def early(self) -> range:
        """W7: the steps measured as a run that is a quarter done."""
        return range(self.history // 4 - self.window // 2, self.history // 4 + self.window // 2)

    @property
    def late(self) -> range:
        """W7: the steps measured as a run that is nearly done."""
        return range(self.history - self.window, self.history)

    @property
    def window(self) -> int:
        """W7: how many steps a figure is taken from."""
        return max(2, self.history // 10)


FULL = Scale()
"""The sizes of the table in the documentation."""

QUICK = Scale(steps=50, rounds=5, items=200, runs=100, gates=200, history=400)
"""Enough to see that everything works; its figures are not comparable with full ones."""

WARM = Scale(steps=3, rounds=1, critics=2, items=3, runs=2, run_steps=2, gates=3, history=8)
"""Run once before the clock starts, so loading modules isn't measured."""
