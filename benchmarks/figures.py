"""How figures are measured: the size of a database or of this process, the time per step."""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

from benchmarks.sample import Figures
from benchmarks.sizes import Scale

MB = 1_000_000


def disk_mb(folder: Path) -> float:
    """Returns the size of all files of a database, after it was closed."""
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / MB


def rss_mb() -> float:
    """Returns how much memory this process holds now, or held at most where that is unknown."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text(encoding="ascii").split()[1]) * resource.getpagesize() / MB
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / MB if sys.platform == "darwin" else peak * 1024 / MB


def growth(marks: Sequence[float], scale: Scale) -> Figures:
    """Returns what a step of the long run costs early and late, from when each one began.

    The median of a stretch, because a single slow sync would decide a mean.
    """
    took = [after - before for before, after in pairwise(marks)]
    early = median(took[i] for i in scale.early if i < len(took))
    late = median(took[i] for i in scale.late if i < len(took))
    return {"early_ms": early * 1000, "late_ms": late * 1000, "growth": late / early}
