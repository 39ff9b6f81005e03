"""W6: what it takes to start, beyond what Python itself takes.

Bytecode is cached, as it is on every start but the first. Bare starts and the starts in
question take turns, and the shortest of each is compared: noise only ever adds.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from time import perf_counter

from benchmarks.sample import Figures, Work
from benchmarks.scale import FULL, Scale

STARTS = 20
"""Starts of each kind in one sample."""


def importing(code: str) -> Work:
    """Returns a work that measures a line of imports."""

    def work(_folder: Path, scale: Scale) -> Figures:
        return {"import_s": over_bare([sys.executable, "-c", code], scale)}

    return work


def over_bare(command: list[str], scale: Scale) -> float:
    """Returns the seconds a command takes over `python -c pass`."""
    bare = [sys.executable, "-c", "pass"]
    _start(command)
    times = [(_start(bare), _start(command)) for _ in range(STARTS if scale == FULL else 5)]
    return min(it for _, it in times) - min(none for none, _ in times)


def _start(command: list[str]) -> float:
    began = perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return perf_counter() - began
