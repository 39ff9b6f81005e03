"""The metrics of all runs: their names, labels and meaning, and how runs are added up.

Labels have few values, whatever runs are called and agents report: no run names, no prompts, no
error messages. An unknown cost is counted as unknown, and never added as 0.

prometheus-client writes the text. It counts nothing here: its counters live in one process, and
these numbers come from the journals of all.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from signoff.core import events as ev
from signoff.core.effects import EffectKind
from signoff.core.errors import ConfigError
from signoff.core.outcome import NOT_ENDED, Status
from signoff.core.remedies import Install
from signoff.core.requests import RequestKind
from signoff.core.run_state import RunState
from signoff.views.timeline import EffectTry, Timeline

if TYPE_CHECKING:
    from prometheus_client.core import Metric


# The numbers of one run that metrics add up, computed from its events.
#
# A summary is stored with the commit it was computed up to. A run that has not changed since is
# never read again, so metrics over ten thousand runs read the journals of a few.


VERSION = 3
"""Increased when a summary changes its meaning; older ones are computed again."""

EFFECT_SECONDS = (0.01, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 14400.0, 86400.0)
"""From a file to an approval that someone gives the next day."""

CLAIM_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)
"""From a worker that was waiting for work to one that someone has to start."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What one run adds to the metrics; plain lists, as JSON has them."""

    amounts: Sequence[Any] = ()
    """Metric, labels, amount."""
    in_doubt: Sequence[Any] = ()
    """Agent, model, count: calls that have started and not ended. If no process drives the run any
    more, they may have been paid for."""

    def to_text(self) -> str:
        """Returns it as the store keeps it."""
        return json.dumps(asdict(self), separators=(",", ":"))

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
    line, found = Timeline(), Metrics()
    for event in events:
        if isinstance(event, ev.RunResumed):
            found.add(line.state.status is Status.RUNNING, "signoff_lease_losses_total")
            if event.ready_at is not None:
                # Never negative, even if the clock of another machine was ahead.
                found.observe(max(0.0, event.at - event.ready_at), "signoff_claim_seconds")
        for each in line.apply(event):
            if isinstance(each, EffectTry):
                kind = each.kind.value
                found.add(1, "signoff_effects_total", kind, each.agent, each.result.value)
                found.observe(each.seconds, "signoff_effect_seconds", kind)
    state = line.state
    facts = facts_of(state.state_with_pending) if facts_of is not None else {}
    _add_spend(found, line)
    for finding in facts.get("findings") or ():
        labels = str(finding.get("severity")), str(finding.get("status"))
        found.add(1, "signoff_findings", *labels)
    if state.status not in NOT_ENDED:
        _add_end(found, state, facts)
    return found.summary(_in_doubt(line))


def _add_spend(found: Metrics, line: Timeline) -> None:
    for entry in line.state.ledger.values():
        of_model = entry.agent, entry.model
        tokens = entry.tokens_in + entry.tokens_out
        # A series that is 0 would claim that the calls were free.
        if tokens or entry.calls > entry.unknown_tokens:
            found.add(tokens, "signoff_tokens_total", *of_model)
        if entry.usd or entry.calls > entry.unknown_usd:
            found.add(entry.usd, "signoff_spend_usd_total", *of_model)
        found.add(entry.unknown_tokens, "signoff_tokens_unknown_total", *of_model)
        found.add(entry.unknown_usd, "signoff_spend_unknown_total", *of_model)


def _add_end(found: Metrics, state: RunState, facts: Mapping[str, Any]) -> None:
    pair = facts.get("pair")
    reason = PAIR_REASONS.get(state.status) if pair is not None else None
    found.add(1, "workflow_runs_total", reason or state.status.value)
    found.observe(state.updated_at - state.started_at, "workflow_duration_seconds")
    if pair is not None and pair["turns"]:
        found.observe(len(pair["turns"]), "workflow_turns")
    if facts.get("rounds"):
        found.observe(len(facts["rounds"]), "signoff_rounds")


def _in_doubt(line: Timeline) -> list[list[Any]]:
    # Their cost is unknown until they end, so they are counted apart and never as free.
    calls = Counter(
        (record.agent, record.model)
        for scope in line.state.effects.values()
        for record in scope.values()
        if record.kind is EffectKind.ASK and not (record.done or record.ended)
    )
    return [[*key, count] for key, count in sorted(calls.items())]


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
SUM = "_sum"

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
        self._amounts: dict[str, dict[Labels, float]] = defaultdict(dict)
        """By metric and labels. A histogram has the number of its bucket as one more label, and
        the sum of its values under a name of its own."""

    def collect(self) -> Iterator[Metric]:
        """Yields the metrics as prometheus-client has them."""
        # Imported here, because it is an extra: everything else works without it.
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        self._add_zeros()
        for name, kind, labels, text in DEFINITIONS:
            if kind == "histogram":
                histogram = HistogramMetricFamily(name, text, labels=labels)
                bounds, buckets = [*map(str, _BOUNDS[name]), "+Inf"], self._amounts[name]
                for values, total in self._amounts[name + SUM].items():
                    found = (buckets.get((*values, str(n)), 0) for n in range(len(bounds)))
                    counts = accumulate(found)
                    histogram.add_metric(values, list(zip(bounds, counts, strict=True)), total)
                yield histogram
                continue
            family = CounterMetricFamily if kind == "counter" else GaugeMetricFamily
            numbers = family(name, text, labels=labels)
            for values, amount in self._amounts[name].items():
                numbers.add_metric(values, amount)
            yield numbers

    def _add_zeros(self) -> None:
        # A dashboard needs a 0 where there is nothing, or it shows a gap.
        for name, kind, labels, _ in DEFINITIONS:
            if not labels:
                self.add(0, name + SUM if kind == "histogram" else name)
        for status in Status:
            self.add(0, "signoff_runs", status.value)
        for request in RequestKind:
            self.add(0, "signoff_inbox_open", request.value)

    def add(self, amount: float, metric: str, *labels: str) -> None:
        """Adds to a counter or a gauge."""
        series = self._amounts[metric]
        values = _series_of(series, labels)
        series[values] = series.get(values, 0) + amount

    def observe(self, value: float, metric: str, *labels: str) -> None:
        """Adds a value to a histogram."""
        self.add(1, metric, *labels, str(bisect_left(_BOUNDS[metric], value)))
        self.add(value, metric + SUM, *labels)

    def add_run(self, status: Status, summary: RunSummary) -> None:
        """Adds one run with its current status."""
        for metric, labels, amount in summary.amounts:
            self.add(amount, metric, *labels)
        if status is Status.RUNNING:
            return
        # No process can record their end any more, and they may have been paid for.
        for agent, model, count in summary.in_doubt:
            self.add(count, "signoff_tokens_unknown_total", agent, model)
            self.add(count, "signoff_spend_unknown_total", agent, model)

    def add_inbox(self, requests: Iterable[tuple[str, float]], now: float) -> None:
        """Adds the pending requests: the kind of each, and when it was opened."""
        opened = []
        for kind, at in requests:
            self.add(1, "signoff_inbox_open", kind)
            opened.append(at)
        if opened:
            self.add(max(0.0, now - min(opened)), "signoff_inbox_oldest_seconds")

    def summary(self, in_doubt: Sequence[Any]) -> RunSummary:
        """Returns what was added, in an order that depends on nothing else."""
        amounts = [
            [metric, [*labels], amount]
            for metric, series in sorted(self._amounts.items())
            for labels, amount in sorted(series.items())
        ]
        return RunSummary(amounts, in_doubt)


def _series_of(series: Mapping[Labels, object], labels: Labels) -> Labels:
    """Returns the labels of the series that a value belongs to."""
    # Half of a surrogate pair cannot be written as UTF-8.
    short = tuple(each[:LONGEST_VALUE].encode(errors="replace").decode() for each in labels)
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
