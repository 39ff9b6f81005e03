"""Takes one sample: one workload by one contestant, in this process.

A contestant is a module with a table of works and this as its entry:
`python -m benchmarks.floor W1 DIR` prints one JSON object of figures. Only the standard
library is used, because other engines run this in their own environments.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
import tempfile
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path

from benchmarks.sizes import FULL, QUICK, WARM, Scale

Figures = dict[str, float]
"""Measured values by name; the same name means the same thing for every contestant."""

Work = Callable[[Path, Scale], Figures]
"""Runs a workload and leaves its files in the directory."""

AsyncWork = Callable[[Path, Scale], Coroutine[None, None, Figures]]

COLD = frozenset({"W5", "W5-prepare", "W6", "W15"})
"""Workloads that measure fresh processes; a warm-up would distort the figures or do nothing."""


def main(works: Mapping[str, Work]) -> None:
    """Runs the work named on the command line and prints its figures."""
    parser = argparse.ArgumentParser(description="Takes one sample and prints it as JSON.")
    parser.add_argument("work", choices=sorted(works))
    parser.add_argument("dir", type=Path)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()

    work = works[options.work]
    if options.work not in COLD:
        with tempfile.TemporaryDirectory(dir=options.dir) as trial:
            work(Path(trial), WARM)
        # Otherwise the number of imported modules decides whether the next full collection, which
        # takes longer than some workloads, is part of the measured time.
        gc.collect()
    figures = work(options.dir, QUICK if options.quick else FULL)
    json.dump(figures, sys.stdout)


def on_loop(work: AsyncWork) -> Work:
    """Returns a workload that runs in its own event loop."""

    def run(folder: Path, scale: Scale) -> Figures:
        return asyncio.run(work(folder, scale))

    return run
