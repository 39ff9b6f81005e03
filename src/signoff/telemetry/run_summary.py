"""The numbers of one run that metrics add up, computed from its events.

A summary is stored with the commit it was computed up to. A run that has not changed since is
never read again, so metrics over ten thousand runs read the journals of a few.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from signoff.core import events as ev
from signoff.core.effects import EffectKind
from signoff.core.outcome import NOT_ENDED, Status
from signoff.runtime.timeline import Timeline
from signoff.telemetry.run_trace import EffectSpan, RunTrace

VERSION = 1
"""Increased when a summary changes its meaning; older ones are computed again."""

EFFECT_SECONDS = (0.01, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 14400.0, 86400.0)
"""From a file to an approval that someone gives the next day."""

CLAIM_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)
"""From a worker that was waiting for work to one that someone has to start."""

_SPEND = ("calls", "tokens_in", "tokens_out", "usd", "unknown_tokens", "unknown_usd")
"""What is added up of a run's ledger."""


@dataclass(slots=True)
class Distribution:
    """How many values are at most as large as each bound."""

    bounds: Sequence[float]
    counts: list[int] = field(default_factory=list)
    """One more than there are bounds; the last one counts what is larger than all of them."""
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = self.counts or [0] * (len(self.bounds) + 1)

    def add(self, value: float) -> None:
        """Counts one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def merge(self, counts: Iterable[int], total: float) -> None:
        """Adds the values of a distribution with the same bounds."""
        self.counts = [a + b for a, b in zip(self.counts, counts, strict=True)]
        self.total += total


@dataclass(slots=True)
class RunSummary:
    """What one run adds to the metrics; plain lists, as JSON has them."""

    effects: list[list[Any]] = field(default_factory=list)
    """Kind, agent, result, count."""
    seconds: list[list[Any]] = field(default_factory=list)
    """Kind, counts by `EFFECT_SECONDS`, total."""
    spend: list[list[Any]] = field(default_factory=list)
    """Agent, model, and the amounts of `_SPEND`."""
    in_doubt: list[list[Any]] = field(default_factory=list)
    """Agent, model, count: calls that have started and not ended. If no process drives the run any
    more, they may have been paid for."""
    findings: list[list[Any]] = field(default_factory=list)
    """Severity, status, count."""
    rounds: int = 0
    """How often the artifact was reviewed."""
    turns: int | None = None
    """The turns of a writer-reviewer pair; None for other runs."""
    seconds_total: float | None = None
    """From the start to the end; None while it has not ended."""
    claims: list[Any] = field(default_factory=list)
    """Counts by `CLAIM_SECONDS` and the total of the times it waited for a worker; empty if it
    never did."""
    lease_losses: int = 0
    """How often a process took it over from one that had not given it up."""

    def to_text(self) -> str:
        """Returns it as the store keeps it."""
        return json.dumps({each.name: getattr(self, each.name) for each in fields(self)})

    @classmethod
    def from_text(cls, text: str) -> RunSummary:
        """Reads what `to_text` wrote."""
        return cls(**json.loads(text))


def summarize(
    events: Iterable[ev.Event],
    facts_of: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
) -> RunSummary:
    """Returns the numbers of a run; `facts_of` returns what its notation reports of its state."""
    trace = RunTrace()
    effects: Counter[tuple[str, str, str]] = Counter()
    seconds: dict[str, Distribution] = {}
    claims, lease_losses = Distribution(CLAIM_SECONDS), 0
    for event in events:
        if isinstance(event, ev.RunResumed):
            lease_losses += trace.timeline.state.status is Status.RUNNING
            if event.ready_at is not None:
                # Never negative, even if the clock of another machine was ahead.
                claims.add(max(0.0, event.at - event.ready_at))
        for span in trace.apply(event):
            if isinstance(span, EffectSpan):
                effects[span.kind.value, span.agent, span.result.value] += 1
                taken = seconds.setdefault(span.kind.value, Distribution(EFFECT_SECONDS))
                taken.add(span.seconds)
    line = trace.timeline
    state = line.state
    facts = facts_of(state.state_with_pending) if facts_of is not None else {}
    pair = facts.get("pair")
    return RunSummary(
        effects=[[*key, count] for key, count in sorted(effects.items())],
        seconds=[[kind, each.counts, each.total] for kind, each in sorted(seconds.items())],
        spend=_spend(line),
        in_doubt=_in_doubt(line),
        findings=_findings(facts.get("findings") or ()),
        rounds=len(facts.get("rounds") or ()),
        turns=len(pair["turns"]) if pair is not None else None,
        seconds_total=None if state.status in NOT_ENDED else state.updated_at - state.started_at,
        claims=[claims.counts, claims.total] if any(claims.counts) else [],
        lease_losses=lease_losses,
    )


def _spend(line: Timeline) -> list[list[Any]]:
    totals: dict[tuple[str, str], list[float]] = {}
    for entry in line.state.ledger.values():
        amounts = totals.setdefault((entry.agent, entry.model), [0] * len(_SPEND))
        for index, name in enumerate(_SPEND):
            amounts[index] += getattr(entry, name)
    return [[*key, *amounts] for key, amounts in sorted(totals.items())]


def _in_doubt(line: Timeline) -> list[list[Any]]:
    calls = Counter(
        (record.agent, record.model)
        for scope in line.state.effects.values()
        for record in scope.values()
        if record.kind is EffectKind.ASK and not (record.done or record.ended)
    )
    return [[*key, count] for key, count in sorted(calls.items())]


def _findings(findings: Iterable[Mapping[str, Any]]) -> list[list[Any]]:
    found = Counter((str(each.get("severity")), str(each.get("status"))) for each in findings)
    return [[*key, count] for key, count in sorted(found.items())]
