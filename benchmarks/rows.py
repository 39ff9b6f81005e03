"""The rows of the table: a workload's figure, the floor it is compared with, and its target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.rounds import Samples

Pick = Callable[[Sequence[float]], float]
"""How several samples become one figure."""


@dataclass(frozen=True)
class Target:
    """The target for a figure; all of its bounds have to hold."""

    at_most: float | None = None
    at_least: float | None = None
    times_floor: float | None = None

    def met(self, value: float, floor: float | None) -> bool:
        """Returns whether a figure meets the target."""
        if self.at_most is not None and value > self.at_most:
            return False
        if self.at_least is not None and value < self.at_least:
            return False
        return self.times_floor is None or (floor is not None and value <= self.times_floor * floor)

    def __str__(self) -> str:
        """Lists the bounds."""
        bounds = []
        if self.at_most is not None:
            bounds.append(f"<= {self.at_most:g}")
        if self.at_least is not None:
            bounds.append(f">= {self.at_least:g}")
        if self.times_floor is not None:
            bounds.append(f"<= {self.times_floor:g} x floor")
        return ", ".join(bounds)


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    work: str
    title: str
    figure: str
    unit: str
    floor: tuple[str, str] | None = None
    """Workload and figure of the floor it is compared with."""
    target: Target | None = None
    pick: Pick = min

    def value(self, samples: Samples, who: str) -> float | None:
        """Returns a contestant's figure, or None when it has none."""
        return _figure(samples, who, self.work, self.figure, self.pick)

    def floor_value(self, samples: Samples) -> float | None:
        """Returns the floor's figure."""
        return None if self.floor is None else _figure(samples, "floor", *self.floor, self.pick)

    def spread(self, samples: Samples, who: str) -> tuple[float, float] | None:
        """Returns the lowest and highest ratio to the floor within one round: the noise."""
        if self.floor is None:
            return None
        ours = _figures(samples, who, self.work, self.figure)
        floors = _figures(samples, "floor", *self.floor)
        ratios = [r for pair in zip(ours, floors, strict=False) if (r := self.ratio(*pair))]
        return (min(ratios), max(ratios)) if ratios else None

    def ratio(self, value: float | None, base: float | None) -> float | None:
        """Returns the cost as a multiple of the base; for rates, how many times lower it is."""
        if not value or not base:
            return None
        return base / value if self.pick is max else value / base


ROWS = (
    Row(
        "W1",
        "chain of 200 steps, per step",
        "ms",
        "ms",
        ("W1", "ms"),
        Target(times_floor=1.7),
    ),
    Row(
        "W1-call",
        "the same, one agent call in each step",
        "ms",
        "ms",
        ("W1-call", "ms"),
        Target(times_floor=1.7),
    ),
    Row("W1-dir", "chain, all of the run directory written too", "ms", "ms", ("W1", "ms")),
    Row(
        "W2",
        "review loop, 20 rounds; floor one by one",
        "s",
        "s",
        ("W2", "s"),
        Target(at_most=0.06, times_floor=1.0),
    ),
    Row("W2", "review loop, 20 rounds; floor grouped", "s", "s", ("W2", "grouped_s")),
    Row(
        "W3",
        "fan-out of 1,000 items of 10 ms; floor grouped",
        "s",
        "s",
        ("W3", "s"),
        Target(at_most=0.10),
    ),
    Row(
        "W4",
        "500 runs of 10 steps at the same time; floor grouped",
        "runs_per_s",
        "runs/s",
        ("W4", "runs_per_s"),
        Target(at_least=600),
        max,
    ),
    Row("W4", "memory of that process", "rss_mb", "MB", ("W4", "rss_mb")),
    Row(
        "W5",
        "2,000 runs at a gate, new process: list what is waited for",
        "list_ms",
        "ms",
        ("W5", "list_ms"),
        Target(at_most=4),
    ),
    Row(
        "W5",
        "all there is to say of each of those runs, not only what it waits for",
        "list_runs_ms",
        "ms",
        ("W5", "list_ms"),
    ),
    Row(
        "W5",
        "answer and resume one",
        "resume_ms",
        "ms",
        ("W5", "resume_ms"),
        Target(at_most=4),
    ),
    Row("W5", "before that, once: open the store", "open_ms", "ms"),
    Row("W5", "before that, once: the digest of the definition", "digest_ms", "ms"),
    Row("W5", "memory taken by opening such a store", "cost_mb", "MB"),
    Row("W5", "memory of that process", "rss_mb", "MB", ("W5", "rss_mb")),
    Row(
        "W6",
        "import, over bare Python; floor sqlite3, asyncio, json",
        "import_s",
        "s",
        ("W6", "import_s"),
        Target(at_most=0.12),
    ),
    Row("W6", "signoff --version, over bare Python", "version_s", "s", None, Target(at_most=0.1)),
    Row("W6", "signoff runs, over bare Python", "runs_s", "s", None, Target(at_most=0.3)),
    Row("W6", "signoff show, over bare Python", "show_s", "s", None, Target(at_most=0.35)),
    Row("W6", "signoff validate, over bare Python", "validate_s", "s", None, Target(at_most=0.33)),
    Row("W6", "signoff run, to its first call, over bare", "run_s", "s", None, Target(at_most=0.6)),
    Row(
        "W6",
        "signoff skill step, over bare Python",
        "skill_step_s",
        "s",
        None,
        Target(at_most=0.15),
    ),
    Row(
        "W6",
        "signoff profile status, over bare",
        "profile_status_s",
        "s",
        None,
        Target(at_most=0.35),
    ),
    Row(
        "W6",
        "signoff profile approve, to the next wait, over bare",
        "profile_approve_s",
        "s",
        None,
        Target(at_most=0.35),
    ),
    Row(
        "W7",
        "2,000 steps over 20 KB: per step at 2,000 over at 500",
        "growth",
        "x",
        ("W7", "growth"),
        Target(at_most=1.1),
        median,
    ),
    Row("W7", "per step at 2,000", "late_ms", "ms", ("W7", "late_ms")),
    Row("W7", "on disk after closing", "disk_mb", "MB", ("W7", "disk_mb"), Target(at_most=7)),
    Row(
        "W8",
        "the guard judges a statement it knows",
        "again_us",
        "us",
        None,
        Target(at_most=300),
    ),
    Row("W8", "and one it sees for the first time", "first_ms", "ms"),
    Row("W8", "a step's guarded transaction, with two conditions", "step_ms", "ms"),
    Row(
        "W8",
        "of that, what the same work by hand does not take",
        "added_ms",
        "ms",
        None,
        Target(at_most=1),
        median,
    ),
    Row(
        "W8",
        "a durable write of a known statement, over the same by hand",
        "write_x",
        "x",
        None,
        Target(at_most=1.5),
        median,
    ),
    Row(
        "W8",
        "a read of a known statement, over the same by hand",
        "read_added_us",
        "us",
        None,
        Target(at_most=100),
        median,
    ),
    Row(
        "W9",
        "a flow's round, 32 critics of 200 ms: over the slowest one",
        "over_ms",
        "ms",
        None,
        Target(at_most=60),
    ),
    Row(
        "W9",
        "of their prompts over 20 KB, what all begin with alike",
        "shared_pct",
        "%",
        None,
        Target(at_least=95),
        max,
    ),
    Row("W10", "a contract step, chain of 200", "empty_ms", "ms"),
    Row(
        "W10",
        "what a transaction, a condition and a marker add to it",
        "added_ms",
        "ms",
        None,
        None,
        median,
    ),
    Row(
        "W10",
        "of that, what the same transaction by hand does not take",
        "over_hand_ms",
        "ms",
        None,
        Target(at_most=1),
        median,
    ),
    Row("W10", "the same in CPU time", "over_hand_cpu_ms", "ms", None, None, median),
    Row(
        "W10",
        "1,000 items of 10 ms, a transaction for each",
        "stored_s",
        "s",
        None,
        Target(at_most=1.0),
    ),
    Row("W10", "1,000 such transactions by hand, one after the other", "stored_by_hand_s", "s"),
    Row(
        "W10-items",
        "contract step over 1,000 items of 10 ms; floor of W3",
        "s",
        "s",
        ("W3", "s"),
        Target(at_most=0.10),
    ),
    Row(
        "W11",
        "automatic session, agents that answer at once, per stage",
        "ms",
        "ms",
        None,
        Target(at_most=10),
    ),
    Row(
        "W12",
        "review loop, 20 rounds of 20 ms: with a log and notifications over without",
        "ratio",
        "x",
        None,
        Target(at_most=1.03),
        median,
    ),
    Row(
        "W12",
        "CPU time that they add, as a part of the loop's time",
        "cpu_pct",
        "%",
        None,
        Target(at_most=3),
        median,
    ),
    Row(
        "W13",
        "the same loop: with traces to a collector that is down over without",
        "ratio",
        "x",
        None,
        Target(at_most=1.01),
        median,
    ),
    Row(
        "W13",
        "CPU time that they add, as a part of the loop's time",
        "cpu_pct",
        "%",
        None,
        None,
        median,
    ),
    Row("W14", "metrics of 10,000 runs, read again, CPU time", "s", "s", None, Target(at_most=1)),
    Row("W14", "read for the first time", "first_s", "s", None, None),
    Row("W15", "review of 50 files of 10 KB, CPU time", "review_s", "s", None, Target(at_most=2)),
    Row("W15", "its memory", "review_mb", "MB", None, Target(at_most=150)),
    Row("W15", "show: 20 rounds of 25 findings", "show_s", "s", None, Target(at_most=0.4)),
    Row("W15", "findings of the same run", "findings_s", "s", None, Target(at_most=0.4)),
    Row("W15", "diff of the same run", "diff_s", "s", None, Target(at_most=0.4)),
    Row("W15", "report of the same run", "report_s", "s", None, Target(at_most=0.5)),
    Row(
        "W16",
        "web server until its first answer, CPU time",
        "start_s",
        "s",
        None,
        Target(at_most=1.5),
    ),
    Row("W16", "list of 10,000 runs, p95", "list_ms", "ms", None, Target(at_most=30)),
    Row("W16", "the same, searched for a text", "search_ms", "ms", None, Target(at_most=30)),
    Row("W16", "first page with 10,000 runs, p95", "home_ms", "ms", None, Target(at_most=50)),
    Row(
        "W16",
        "page of a run, 20 rounds of 25 findings, p95",
        "run_ms",
        "ms",
        None,
        Target(at_most=50),
    ),
    Row("W16", "its size, compressed", "page_kb", "KB", None, Target(at_most=100)),
    Row("W16", "its findings as JSON, p95", "findings_ms", "ms", None, Target(at_most=50)),
    Row("W16", "200 open pages, part of a core", "quiet_pct", "%", None, Target(at_most=5)),
    Row("W16", "the same at ten commits a second", "busy_pct", "%", None, None),
    Row(
        "W16",
        "commit of another process to its event, p95",
        "event_ms",
        "ms",
        None,
        Target(at_most=150),
    ),
    Row("W16", "the same to all 200 pages refreshed, p95", "refresh_ms", "ms", None, None),
    Row(
        "W16-engine",
        "CPU time of W4 next to 200 open pages, more by",
        "slower_pct",
        "%",
        None,
        Target(at_most=3),
    ),
)


def _figure(samples: Samples, who: str, work: str, figure: str, pick: Pick) -> float | None:
    found = _figures(samples, who, work, figure)
    return pick(found) if found else None


def _figures(samples: Samples, who: str, work: str, figure: str) -> list[float]:
    return [s[figure] for s in samples.get(who, {}).get(work, ()) if figure in s]
