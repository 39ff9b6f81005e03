"""Traces runs while they are driven, with OpenTelemetry's SDK, which sends batches.

Batches are sent by threads of the SDK. A collector that is slow or down delays no run; what it
cannot take is lost, and `signoff export otel` sends it later, under the same ids.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from signoff._extras import install_command
from signoff.core import events as ev
from signoff.errors import ConfigError
from signoff.exports.otel import SERVICE, nanoseconds
from signoff.observers.queued import ObserverSetup
from signoff.runtime.ports import Notice, Recorded
from signoff.runtime.store_port import Store
from signoff.telemetry.genai_names import METRIC_UNITS
from signoff.telemetry.otel_signals import (
    OtelEvent,
    OtelMeasurement,
    OtelSignals,
    OtelSpan,
    Signal,
)

if TYPE_CHECKING:
    from opentelemetry.sdk._logs.export import LogRecordExporter
    from opentelemetry.sdk.metrics.export import MetricReader
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

log = logging.getLogger("signoff")

LIVE_SECONDS = 2.0
"""How long a collector may take for a batch. The end of a command waits for the last one."""

UNSENT_SECONDS = 60.0
"""A process that was killed may have taken this much of the trace with it; see `OtelObserver`."""

BATCH_SECONDS = 1.0
"""How long a span waits for others at most: what is not sent when a process is killed is lost."""

BATCH_SPANS = 500
"""Spans of one request."""

CLOSE_SECONDS = 3.0
"""How long the end of a command waits for what is still to be sent."""


@dataclass(frozen=True)
class OtelExporters:
    """Where the three kinds of signal go; tests keep them in memory."""

    spans: SpanExporter
    logs: LogRecordExporter
    metrics: MetricReader | None = None


def otlp_exporters(endpoint: str | None, *, timeout: float | None = None) -> OtelExporters:
    """Returns exporters that send by OTLP over HTTP, configured by the usual `OTEL_` variables.

    `endpoint` is the collector's address without a path, such as `http://localhost:4318`.
    """
    # In seconds, retries included; what the user sets goes before.
    timeout = None if "OTEL_EXPORTER_OTLP_TIMEOUT" in os.environ else timeout
    try:
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    except ImportError as error:
        raise ConfigError(
            f"tracing needs the extra 'otel'; install it: {install_command('otel')}"
        ) from error

    # It would print a line for each retry of each batch; `_WatchedExporter` says it once.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)

    def address(signal: str) -> str | None:
        return None if endpoint is None else f"{endpoint.rstrip('/')}/v1/{signal}"

    return OtelExporters(
        OTLPSpanExporter(endpoint=address("traces"), timeout=timeout),
        OTLPLogExporter(endpoint=address("logs"), timeout=timeout),
        PeriodicExportingMetricReader(
            OTLPMetricExporter(endpoint=address("metrics"), timeout=timeout)
        ),
    )


class _WatchedExporter:
    """Passes spans on to an exporter, and notes whether a collector takes them."""

    def __init__(self, exporter: SpanExporter, *, report: bool) -> None:
        self._exporter = exporter
        self._reported = not report
        self.failed = False
        """Whether the last batch was refused."""
        self.shutdown = exporter.shutdown
        self.force_flush = exporter.force_flush

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Sends spans; the first failure is reported."""
        from opentelemetry.sdk.trace.export import SpanExportResult

        result = self._exporter.export(spans)
        self.failed = result is not SpanExportResult.SUCCESS
        if self.failed and not self._reported:
            self._reported = True
            log.warning(
                "the trace is incomplete, because no collector takes it; check "
                "OTEL_EXPORTER_OTLP_ENDPOINT. The whole trace can be exported later"
            )
        return result


class OtelExport:
    """Sends signals as they come."""

    def __init__(self, exporters: OtelExporters, *, report: bool = True) -> None:
        """`report` warns once if no collector takes the spans."""
        from opentelemetry.sdk._logs import LoggerProvider
        from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.status import Status, StatusCode

        self._exporter = _WatchedExporter(exporters.spans, report=report)
        # The environment may name the service and add attributes, and goes before our name.
        named = Resource.create({"service.name": SERVICE})
        self._resource = named.merge(OTELResourceDetector().detect())
        self._make_span = partial(
            ReadableSpan,
            resource=self._resource,
            instrumentation_scope=InstrumentationScope(SERVICE),
        )
        self._kinds = {False: SpanKind.INTERNAL, True: SpanKind.CLIENT}
        self._statuses = {False: Status(StatusCode.UNSET), True: Status(StatusCode.ERROR)}
        delay = BATCH_SECONDS * 1000
        watched = cast("SpanExporter", self._exporter)
        self._spans = BatchSpanProcessor(watched, schedule_delay_millis=delay)
        self._logs = LoggerProvider(resource=self._resource, shutdown_on_exit=False)
        self._logs.add_log_record_processor(
            BatchLogRecordProcessor(exporters.logs, schedule_delay_millis=delay)
        )
        readers = [exporters.metrics] if exporters.metrics is not None else []
        self._metrics = MeterProvider(readers, self._resource, shutdown_on_exit=False)
        self._meter = self._metrics.get_meter(SERVICE)
        self._histograms: dict[str, Any] = {}

    def send(self, signals: Iterable[Signal]) -> None:
        """Queues signals; returns at once."""
        for signal in signals:
            match signal:
                case OtelSpan():
                    self._spans.on_end(self._sdk_span(signal))
                case OtelEvent():
                    self._emit(signal)
                case OtelMeasurement():
                    self._record(signal)

    def deliver(self, signals: Iterable[Signal]) -> bool:
        """Sends signals and waits for the collector; tells whether it took the spans."""
        listed = list(signals)
        self.send(each for each in listed if isinstance(each, OtelEvent))
        spans = [self._sdk_span(each) for each in listed if isinstance(each, OtelSpan)]
        for at in range(0, len(spans), BATCH_SPANS):
            self._exporter.export(spans[at : at + BATCH_SPANS])
            if self._exporter.failed:
                return False
        return True

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Sends what is queued, for at most that many seconds."""
        closing: list[Callable[[], object]] = [
            self._spans.shutdown,
            self._logs.shutdown,
            self._metrics.shutdown,
        ]
        # A collector that does not answer blocks each of them for as long as its timeout. One that
        # has not answered before is not waited for.
        threads = [threading.Thread(target=each, daemon=True) for each in closing]
        for thread in threads:
            thread.start()
        until = time.monotonic() + (0.0 if self._exporter.failed else seconds)
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _sdk_span(self, span: OtelSpan) -> ReadableSpan:
        return self._make_span(
            name=span.name,
            context=_context(span.trace_id, span.span_id),
            parent=_context(span.trace_id, span.parent_id) if span.parent_id else None,
            attributes=span.attributes,
            kind=self._kinds[span.client],
            status=self._statuses[span.failed],
            start_time=nanoseconds(span.started_at),
            end_time=nanoseconds(span.ended_at),
        )

    def _emit(self, event: OtelEvent) -> None:
        from opentelemetry._logs import LogRecord, SeverityNumber
        from opentelemetry.trace import NonRecordingSpan, set_span_in_context

        span = NonRecordingSpan(_context(event.trace_id, event.span_id))
        at = nanoseconds(event.at)
        record = LogRecord(
            timestamp=at,
            observed_timestamp=at,
            context=set_span_in_context(span),
            severity_number=SeverityNumber.INFO,
            attributes=dict(event.attributes),
            event_name=event.name,
        )
        self._logs.get_logger(SERVICE).emit(record)

    def _record(self, measurement: OtelMeasurement) -> None:
        name = measurement.metric
        if name not in self._histograms:
            self._histograms[name] = self._meter.create_histogram(name, unit=METRIC_UNITS[name])
        self._histograms[name].record(measurement.value, dict(measurement.attributes))


def _context(trace_id: str, span_id: str) -> Any:
    from opentelemetry.trace import SpanContext, TraceFlags

    flags = TraceFlags(TraceFlags.SAMPLED)
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=False, trace_flags=flags)


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

    def __init__(self, setup: ObserverSetup, exporters: OtelExporters) -> None:
        self._setup = setup
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
            run = _TracedRun(OtelSignals(name, history, content))
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
    return OtelObserver(setup, otlp_exporters(endpoint, timeout=LIVE_SECONDS))
