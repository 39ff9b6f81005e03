"""Traces runs while they are driven, with OpenTelemetry."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from signoff.core import events as ev
from signoff.observers.otel_export import OtelExport, OtelExporters, otlp_exporters
from signoff.observers.setup import ObserverSetup
from signoff.runtime.ports import Notice, Recorded
from signoff.runtime.store_port import Store
from signoff.telemetry.genai_names import OPT_IN_VARIABLE, wants_latest
from signoff.telemetry.otel_signals import OtelSignals, OtelSpan, Signal

LIVE_SECONDS = 2.0
"""How long a collector may take for a batch. The end of a command waits for the last one."""

UNSENT_SECONDS = 60.0
"""A process that was killed may have taken this much of the trace with it; see `OtelObserver`."""


@dataclass(slots=True)
class _TracedRun:
    signals: OtelSignals
    seq: int = 0
    """The last commit that was followed."""


class OtelObserver:
    """Sends each span when it ends.

    A run that this process did not start is read from its journal first, so that its trace
    continues. If the process before was killed, the spans that ended in its last minute are sent
    again, under the same ids: they may have been in its memory.
    """

    def __init__(self, setup: ObserverSetup, exporters: OtelExporters, *, latest: bool) -> None:
        self._setup = setup
        self._latest = latest
        self._export = OtelExport(exporters)
        self._store: Store | None = None
        self._runs: dict[str, _TracedRun] = {}

    def notice(self, notice: Notice) -> None:
        """Follows one commit."""
        if not isinstance(notice, Recorded):
            return
        run = self._runs.get(notice.run)
        if run is None or run.seq + 1 != notice.seq:
            run = self._catch_up(notice.run, notice.seq, run)
        for event in notice.events:
            self._export.send(run.signals.apply(event))
            if isinstance(event, ev.RunStopped):
                # A process that drives thousands of runs must not remember them all.
                del self._runs[notice.run]
        run.seq = notice.seq

    def close(self) -> None:
        """Sends what is still queued, for a few seconds at most."""
        self._export.close()
        if self._store is not None:
            self._store.close()

    def _catch_up(self, name: str, seq: int, run: _TracedRun | None) -> _TracedRun:
        """Reads the commits before `seq` that were not followed, and sends what may be missing."""
        if self._store is None:
            # Opened here because only this thread may use it.
            self._store = self._setup.open_store()
        record = self._setup.record_of(self._store, name)
        content = self._setup.log_content
        if run is None:
            history = record.history(record.definition) if record.history is not None else None
            run = _TracedRun(OtelSignals(name, history, content, self._latest))
        missed: list[Signal] = []
        first, killed, last = run.seq, False, 0.0
        for number, event in record.events(whole=content):
            if first < number < seq:
                missed += run.signals.apply(event)
                killed, last = not isinstance(event, ev.RunStopped), event.at
        self._runs[name] = run
        if first:
            # Notices were dropped because the queue was full; the journal has them all.
            self._export.send(missed)
        elif killed:
            self._export.send(_recent_spans(missed, last - UNSENT_SECONDS))
        return run


def _recent_spans(signals: list[Signal], since: float) -> Iterator[Signal]:
    return (each for each in signals if isinstance(each, OtelSpan) and each.ended_at >= since)


def otel_observer(setup: ObserverSetup, *, endpoint: str | None = None) -> OtelObserver:
    """Returns the observer of `observe: {otel: ...}`; raises `ConfigError` without the extra."""
    latest = wants_latest(os.environ.get(OPT_IN_VARIABLE, ""))
    return OtelObserver(setup, otlp_exporters(endpoint, timeout=LIVE_SECONDS), latest=latest)
