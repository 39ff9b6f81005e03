"""The metrics of all runs: their names, labels and meaning, and how runs are added up.

Labels have few values, whatever runs are called and agents report: no run names, no prompts, no
error messages. An unknown cost is counted as unknown, and never added as 0.

prometheus-client writes the text. It counts nothing here: its counters live in one process, and
these numbers come from the journals of all.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from signoff.core import events as ev
from signoff.core.effects import EffectKind
from signoff.core.outcome import NOT_ENDED, Status
from signoff.core.requests import RequestKind
from signoff.errors import ConfigError
from signoff.remedies import Install
from signoff.runtime.timeline import EffectTry, Timeline

if TYPE_CHECKING:
    from prometheus_client.core import Metric


# The numbers of one run that metrics add up, computed from its events.
#
# A summary is stored with the commit it was computed up to. A run that has not changed since is
# never read again, so metrics over ten thousand runs read the journals of a few.


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
    # One pass over the journal: a summary is computed for every run that has changed since the last
    # scrape, however long it is.
    line = Timeline()
    effects: Counter[tuple[str, str, str]] = Counter()
    seconds: dict[str, Distribution] = {}
    claims, lease_losses = Distribution(CLAIM_SECONDS), 0
    for event in events:
        if isinstance(event, ev.RunResumed):
            lease_losses += line.state.status is Status.RUNNING
            if event.ready_at is not None:
                # Never negative, even if the clock of another machine was ahead.
                claims.add(max(0.0, event.at - event.ready_at))
        for span in line.apply(event):
            if isinstance(span, EffectTry):
                effects[span.kind.value, span.agent, span.result.value] += 1
                taken = seconds.setdefault(span.kind.value, Distribution(EFFECT_SECONDS))
                taken.add(span.seconds)
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
    # Their cost is unknown until they end, so they are counted apart and never as free.
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


MOST_SERIES = 200
"""Series of one metric. Agents report the names of their models themselves, and one that invents
names must not fill the memory of a Prometheus server."""
LONGEST_VALUE = 120
"""Characters of a label's value."""
OTHER = "other"
"""The value of the labels of all series beyond the first `MOST_SERIES`."""

RUN_SECONDS = (1.0, 5.0, 15.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0, 604800.0)
"""From a script to a run that waits a week for its approval."""

ROUNDS = (1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 20.0, 50.0)

Labels = tuple[str, ...]

PAIR_REASONS: Mapping[Status, str] = {
    Status.COMPLETED: "approved",
    Status.LIMIT: "max_turns",
    Status.NOT_CONVERGING: "converged",
    Status.FAILED: "error",
    Status.CANCELLED: "cancelled",
}
"""What the end of a writer-reviewer pair is called; other runs are counted by their status."""


DEFINITIONS: tuple[tuple[str, str, Labels, str], ...] = (
    (
        "workflow_runs_total", "counter", ("completion_reason",),
        "Runs that have ended, by the reason of a pair or the status of another run.",
    ),
    (
        "workflow_duration_seconds", "histogram", (),
        "Time from the start to the end of runs that have ended, waits included.",
    ),
    ("workflow_turns", "histogram", (), "Turns of writer-reviewer pairs that have ended."),
    (
        "signoff_effects_total", "counter", ("kind", "agent", "result"),
        "Ended tries at effects: ok, error, retried, or lost with their process.",
    ),
    ("signoff_effect_seconds", "histogram", ("kind",), "Time that tries at effects took."),
    (
        "signoff_spend_usd_total", "counter", ("agent", "model"),
        "Known cost of agent calls in US dollars.",
    ),
    (
        "signoff_spend_unknown_total", "counter", ("agent", "model"),
        "Agent calls whose cost is unknown; it is not part of signoff_spend_usd_total.",
    ),
    (
        "signoff_tokens_total", "counter", ("agent", "model"),
        "Known tokens of agent calls, input and output.",
    ),
    (
        "signoff_tokens_unknown_total", "counter", ("agent", "model"),
        "Agent calls whose tokens are unknown; they are not part of signoff_tokens_total.",
    ),
    ("signoff_inbox_open", "gauge", ("kind",), "Requests that wait for a human."),
    (
        "signoff_inbox_oldest_seconds", "gauge", (),
        "Age of the oldest request that waits for a human; 0 if there is none.",
    ),
    (
        "signoff_queue_oldest_seconds", "gauge", (),
        "How long the oldest queued run has waited for a worker; 0 if there is none.",
    ),
    (
        "signoff_queue_stuck", "gauge", (),
        "Queued runs that no worker can take: none is running, or none can do what they need.",
    ),
    (
        "signoff_claim_seconds", "histogram", (),
        "How long runs that were queued, due or answered waited for a worker to claim them.",
    ),
    (
        "signoff_lease_losses_total", "counter", (),
        "Times a process took over a run because the one that drove it had died or lost its lease.",
    ),
    ("signoff_worker_slots", "gauge", (), "How many runs all workers together drive at once."),
    ("signoff_workers", "gauge", (), "Workers that are running."),
    ("signoff_runs", "gauge", ("status",), "Runs by their current status."),
    (
        "signoff_runs_unreadable", "gauge", (),
        "Runs whose journal is damaged; the other metrics leave them out.",
    ),
    (
        "signoff_findings", "gauge", ("severity", "status"),
        "Findings of reviews by severity and what became of them.",
    ),
    ("signoff_rounds", "histogram", (), "Review rounds of runs that have ended."),
)  # fmt: skip
"""Every metric: its name, type, labels and meaning."""

_BOUNDS = {
    "workflow_duration_seconds": RUN_SECONDS,
    "workflow_turns": ROUNDS,
    "signoff_effect_seconds": EFFECT_SECONDS,
    "signoff_claim_seconds": CLAIM_SECONDS,
    "signoff_rounds": ROUNDS,
}


class Metrics:
    """Adds up runs and pending requests."""

    def __init__(self) -> None:
        self._series: dict[str, dict[Labels, float | Distribution]] = {}
        # A dashboard needs a 0 where there is nothing, or it shows a gap.
        for name, _, labels, _ in DEFINITIONS:
            self._series[name] = {}
            if not labels:
                bounds = _BOUNDS.get(name)
                self._series[name][()] = 0.0 if bounds is None else Distribution(bounds)
        for status in Status:
            self.add(0, "signoff_runs", status.value)
        for kind in RequestKind:
            self.add(0, "signoff_inbox_open", kind.value)

    def collect(self) -> Iterator[Metric]:
        """Yields the metrics as prometheus-client has them."""
        # Imported here, because it is an extra: everything else works without it.
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        for name, kind, labels, text in DEFINITIONS:
            if kind == "histogram":
                histogram = HistogramMetricFamily(name, text, labels=labels)
                for values, each in self._series[name].items():
                    assert isinstance(each, Distribution)  # noqa: S101  # it has nothing else
                    bounds = [*map(str, each.bounds), "+Inf"]
                    counts = accumulate(each.counts)
                    histogram.add_metric(values, list(zip(bounds, counts, strict=True)), each.total)
                yield histogram
                continue
            family = CounterMetricFamily if kind == "counter" else GaugeMetricFamily
            numbers = family(name, text, labels=labels)
            for values, amount in self._series[name].items():
                assert not isinstance(amount, Distribution)  # noqa: S101  # as above
                numbers.add_metric(values, amount)
            yield numbers

    def add(self, amount: float, metric: str, *labels: str) -> None:
        """Adds to a counter or a gauge."""
        values = self._labels(metric, labels)
        before = self._series[metric].get(values, 0.0)
        assert not isinstance(before, Distribution)  # noqa: S101  # a histogram has no amounts
        self._series[metric][values] = before + amount

    def add_run(self, status: Status, summary: RunSummary) -> None:
        """Adds one run with its current status."""
        for kind, agent, result, count in summary.effects:
            self.add(count, "signoff_effects_total", kind, agent, result)
        for kind, counts, total in summary.seconds:
            self._distribution("signoff_effect_seconds", kind).merge(counts, total)
        for agent, model, calls, *amounts in summary.spend:
            self._add_spend(agent, model, calls, *amounts)
        if status is not Status.RUNNING:
            # No process can record their end any more, and they may have been paid for.
            for agent, model, count in summary.in_doubt:
                self._add_unknown(agent, model, count, count)
        self._add_claims(summary)
        for severity, became, count in summary.findings:
            self.add(count, "signoff_findings", severity, became)
        if status not in NOT_ENDED:
            self._add_end(status, summary)

    def _add_claims(self, summary: RunSummary) -> None:
        self.add(summary.lease_losses, "signoff_lease_losses_total")
        if summary.claims:
            self._distribution("signoff_claim_seconds").merge(*summary.claims)

    def _add_end(self, status: Status, summary: RunSummary) -> None:
        reason = PAIR_REASONS.get(status) if summary.turns is not None else None
        self.add(1, "workflow_runs_total", reason or status.value)
        self._distribution("workflow_duration_seconds").add(summary.seconds_total or 0.0)
        if summary.turns:
            self._distribution("workflow_turns").add(summary.turns)
        if summary.rounds:
            self._distribution("signoff_rounds").add(summary.rounds)

    def _add_spend(
        self,
        agent: str,
        model: str,
        calls: int,
        tokens_in: int,
        tokens_out: int,
        usd: float,
        unknown_tokens: int,
        unknown_usd: int,
    ) -> None:
        # A series that is 0 would claim that the calls were free.
        if tokens_in or tokens_out or calls > unknown_tokens:
            self.add(tokens_in + tokens_out, "signoff_tokens_total", agent, model)
        if usd or calls > unknown_usd:
            self.add(usd, "signoff_spend_usd_total", agent, model)
        self._add_unknown(agent, model, unknown_tokens, unknown_usd)

    def _add_unknown(self, agent: str, model: str, tokens: int, usd: int) -> None:
        self.add(tokens, "signoff_tokens_unknown_total", agent, model)
        self.add(usd, "signoff_spend_unknown_total", agent, model)

    def add_inbox(self, requests: Iterable[tuple[str, float]], now: float) -> None:
        """Adds the pending requests: the kind of each, and when it was opened."""
        opened = []
        for kind, at in requests:
            self.add(1, "signoff_inbox_open", kind)
            opened.append(at)
        if opened:
            self.add(max(0.0, now - min(opened)), "signoff_inbox_oldest_seconds")

    def _distribution(self, metric: str, *labels: str) -> Distribution:
        values = self._labels(metric, labels)
        found = self._series[metric].setdefault(values, Distribution(_BOUNDS[metric]))
        assert isinstance(found, Distribution)  # noqa: S101  # a histogram has nothing else
        return found

    def _labels(self, metric: str, labels: Labels) -> Labels:
        """Returns the labels of the series that a value belongs to."""
        # Half of a surrogate pair cannot be written as UTF-8.
        short = tuple(each[:LONGEST_VALUE].encode(errors="replace").decode() for each in labels)
        series = self._series[metric]
        full = short not in series and len(series) >= MOST_SERIES
        return (OTHER,) * len(labels) if full else short


def prometheus_text(metrics: Metrics) -> str:
    """Returns the metrics in the text format of Prometheus; raises `ConfigError`."""
    try:
        from prometheus_client import generate_latest
    except ImportError as error:
        message = "metrics need the extra 'prometheus'"
        raise ConfigError(message, remedy=Install("prometheus")) from error
    return generate_latest(metrics).decode()
