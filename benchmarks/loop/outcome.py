"""What one loop made of one artifact, and the sums over all artifacts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.loop.meter import CallRecord, Meter
from benchmarks.loop.simulation import BLOCKING, Simulation


@dataclass(frozen=True)
class LoopEnd:
    """How a loop ended."""

    approved: bool
    rounds: int
    text: str
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """The figures of one artifact in one loop."""

    artifact: str
    approved: bool
    rounds: int
    seconds: float
    left: int
    """Defects in the final text, planted and introduced."""
    left_blocking: int
    """Those of them that are CRITICAL or HIGH."""
    introduced: int
    """Defects that fixes brought in, even if they were fixed later."""
    critical_reported: int
    """Planted CRITICAL defects in an approved text that some critic had reported."""
    critical_dismissed: int
    """Those of them that the judge had dismissed."""
    calls: tuple[CallRecord, ...]

    @property
    def tokens_in(self) -> int:
        """All input tokens."""
        return sum(each.tokens_in for each in self.calls)

    @property
    def cached(self) -> int:
        """Input tokens that came from the prompt cache."""
        return sum(each.cached for each in self.calls)

    @property
    def tokens_out(self) -> int:
        """All output tokens."""
        return sum(each.tokens_out for each in self.calls)


def measure(simulation: Simulation, meter: Meter, end: LoopEnd) -> Outcome:
    """Returns the figures of a loop that has ended."""
    left = simulation.left(end.text)
    criticals = {
        each.ref for each in left if end.approved and each.planted and each.severity == "CRITICAL"
    } & set(simulation.alarms)
    return Outcome(
        artifact=simulation.artifact.name,
        approved=end.approved,
        rounds=end.rounds,
        seconds=end.seconds,
        left=len(left),
        left_blocking=sum(each.severity in BLOCKING for each in left),
        introduced=len(simulation.appeared & set(simulation.introduced)),
        critical_reported=len(criticals),
        critical_dismissed=len(criticals & simulation.dismissed),
        calls=tuple(meter.calls),
    )


FIGURES: dict[str, Callable[[Outcome], float]] = {
    "rounds": lambda each: each.rounds,
    "calls": lambda each: len(each.calls),
    "tokens_in": lambda each: each.tokens_in,
    "cached": lambda each: each.cached,
    "tokens_out": lambda each: each.tokens_out,
    "seconds": lambda each: each.seconds,
    "left": lambda each: each.left,
    "left_blocking": lambda each: each.left_blocking,
    "introduced": lambda each: each.introduced,
    "not_approved": lambda each: not each.approved,
    "critical_reported": lambda each: each.critical_reported,
    "critical_dismissed": lambda each: each.critical_dismissed,
}


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Returns all figures: their sums and means, by round, by agent and by artifact."""
    sums = {name: sum(map(figure, outcomes)) for name, figure in FIGURES.items()}
    calls = [call for each in outcomes for call in each.calls]
    return {
        "artifacts": len(outcomes),
        "sum": {name: round(value, 3) for name, value in sums.items()},
        "mean": {name: round(value / len(outcomes), 3) for name, value in sums.items()},
        "by_round": grouped(calls, "round_number"),
        "by_agent": grouped(calls, "agent"),
        "outcomes": [
            {name: value for name, value in asdict(each).items() if name != "calls"}
            | {name: FIGURES[name](each) for name in ("calls", "tokens_in", "cached", "tokens_out")}
            for each in outcomes
        ],
    }


def grouped(calls: Sequence[CallRecord], attribute: str) -> list[dict[str, Any]]:
    """Returns the calls and tokens of each round or each agent, summed over all artifacts."""
    groups: dict[Any, list[CallRecord]] = {}
    for call in calls:
        groups.setdefault(getattr(call, attribute), []).append(call)
    return [
        {
            attribute: name,
            "calls": len(group),
            "critics": sum(call.agent == "critic" for call in group),
            "tokens_in": sum(call.tokens_in for call in group),
            "cached": sum(call.cached for call in group),
            "tokens_out": sum(call.tokens_out for call in group),
        }
        for name, group in sorted(groups.items())
    ]
