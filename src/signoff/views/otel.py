"""Traces runs while they are driven, with OpenTelemetry's SDK, which sends batches.

Batches are sent by threads of the SDK. A collector that is slow or down delays no run; what it
cannot take is lost, and `signoff export otel` sends it later, under the same ids.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from signoff.core import events as ev
from signoff.core.errors import ConfigError
from signoff.runtime.extras import install_command
from signoff.runtime.ports import Notice, Recorded
from signoff.runtime.store_port import Store
from signoff.views.exports.otel import (
    SERVICE,
    OtelEvent,
    OtelSignals,
    OtelSpan,
    Signal,
    nanoseconds,
)
from signoff.views.queued import ObserverSetup

# This module is loaded only where the settings or a command ask for it.
try:
    from opentelemetry import trace
    from opentelemetry._logs import LogRecord, SeverityNumber
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
except ImportError as error:
    raise ConfigError(
        f"tracing needs the extra 'otel'; install it: {install_command('otel')}"
    ) from error

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
    """Where the two kinds of signal go; tests keep them in memory."""

    spans: SpanExporter
    logs: LogRecordExporter


def otlp_exporters(endpoint: str | None, *, timeout: float | None = None) -> OtelExporters:
    """Returns exporters that send by OTLP over HTTP, configured by the usual `OTEL_` variables.

    `endpoint` is the collector's address without a path, such as `http://localhost:4318`.
    """
    # In seconds, retries included; what the user sets goes before.
    timeout = None if "OTEL_EXPORTER_OTLP_TIMEOUT" in os.environ else timeout
    # It would print a line for each retry of each batch; `_WatchedExporter` says it once.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)

    def address(signal: str) -> str | None:
        return None if endpoint is None else f"{endpoint.rstrip('/')}/v1/{signal}"

    return OtelExporters(
        OTLPSpanExporter(endpoint=address("traces"), timeout=timeout),
        OTLPLogExporter(endpoint=address("logs"), timeout=timeout),
    )


class _WatchedExporter(SpanExporter):
    """Passes spans on to an exporter, and notes whether a collector takes them."""

    def __init__(self, exporter: SpanExporter, *, report: bool) -> None:
        self._exporter = exporter
        self._reported = not report
        self.failed = False
        """Whether the last batch was refused."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Sends spans; the first failure is reported."""
        result = self._exporter.export(spans)
        self.failed = result is not SpanExportResult.SUCCESS
        if self.failed and not self._reported:
            self._reported = True
            log.warning(
                "the trace is incomplete, because no collector takes it; check "
                "OTEL_EXPORTER_OTLP_ENDPOINT. The whole trace can be exported later"
            )
        return result

    def shutdown(self) -> None:
        """Ends the exporter."""
        self._exporter.shutdown()


class OtelExport:
    """Sends signals as they come."""

    def __init__(self, exporters: OtelExporters, *, report: bool = True) -> None:
        """`report` warns once if no collector takes the spans."""
        self._exporter = _WatchedExporter(exporters.spans, report=report)
        # The environment may name the service and add attributes, and goes before our name.
        named = Resource.create({"service.name": SERVICE})
        self._resource = named.merge(OTELResourceDetector().detect())
        delay = BATCH_SECONDS * 1000
        self._spans = BatchSpanProcessor(self._exporter, schedule_delay_millis=delay)
        self._logs = LoggerProvider(resource=self._resource, shutdown_on_exit=False)
        self._logs.add_log_record_processor(
            BatchLogRecordProcessor(exporters.logs, schedule_delay_millis=delay)
        )

    def send(self, signals: Iterable[Signal]) -> None:
        """Queues signals; returns at once."""
        for signal in signals:
            match signal:
                case OtelSpan():
                    self._spans.on_end(self._sdk_span(signal))
                case OtelEvent():
                    self._emit(signal)

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
        closing = (self._spans.shutdown, self._logs.shutdown)
        # A collector that does not answer blocks each of them for as long as its timeout. One that
        # has not answered before is not waited for.
        threads = [threading.Thread(target=each, daemon=True) for each in closing]
        for thread in threads:
            thread.start()
        until = time.monotonic() + (0.0 if self._exporter.failed else seconds)
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _sdk_span(self, span: OtelSpan) -> ReadableSpan:
        status = trace.StatusCode.ERROR if span.failed else trace.StatusCode.UNSET
        return ReadableSpan(
            name=span.name,
            context=_context(span.trace_id, span.span_id),
            parent=_context(span.trace_id, span.parent_id) if span.parent_id else None,
            resource=self._resource,
            attributes=span.attributes,
            kind=trace.SpanKind.CLIENT if span.client else trace.SpanKind.INTERNAL,
            status=trace.Status(status),
            start_time=nanoseconds(span.started_at),
            end_time=nanoseconds(span.ended_at),
            instrumentation_scope=InstrumentationScope(SERVICE),
        )

    def _emit(self, event: OtelEvent) -> None:
        span = trace.NonRecordingSpan(_context(event.trace_id, event.span_id))
        at = nanoseconds(event.at)
        record = LogRecord(
            timestamp=at,
            observed_timestamp=at,
            context=trace.set_span_in_context(span),
            severity_number=SeverityNumber.INFO,
            attributes=dict(event.attributes),
            event_name=event.name,
        )
        self._logs.get_logger(SERVICE).emit(record)


def _context(trace_id: str, span_id: str) -> trace.SpanContext:
    flags = trace.TraceFlags(trace.TraceFlags.SAMPLED)
    return trace.SpanContext(int(trace_id, 16), int(span_id, 16), False, flags)


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
        self._runs: dict[str, tuple[int, OtelSignals]] = {}
        """The last commit of each run that was followed, and the run up to there."""

    def notice(self, notice: Notice) -> None:
        """Follows one commit."""
        if not isinstance(notice, Recorded):
            return
        seq, signals = self._runs.get(notice.run, (0, None))
        if signals is None or seq + 1 != notice.seq:
            signals = self._catch_up(notice.run, seq, notice.seq, signals)
        for event in notice.events:
            self._export.send(signals.apply(event))
        self._runs[notice.run] = notice.seq, signals
        if any(isinstance(event, ev.RunStopped) for event in notice.events):
            # A process that drives thousands of runs must not remember them all.
            del self._runs[notice.run]

    def close(self) -> None:
        """Sends what is still queued, for a few seconds at most."""
        self._export.close()
        if self._store is not None:
            self._store.close()

    def _catch_up(self, name: str, seq: int, to: int, signals: OtelSignals | None) -> OtelSignals:
        """Reads the commits that were not followed, and sends what may be missing of them."""
        if self._store is None:
            # Opened here because only this thread may use it.
            self._store = self._setup.open_store()
        record = self._setup.record_of(self._store, name)
        content = self._setup.log_content
        if signals is None:
            history = record.history(record.definition) if record.history is not None else None
            signals = OtelSignals(name, history, content)
        missed: list[Signal] = []
        killed, last = False, 0.0
        for number, event in record.events(whole=content):
            if seq < number < to:
                missed += signals.apply(event)
                killed, last = not isinstance(event, ev.RunStopped), event.at
        if seq:
            # Notices were dropped because the queue was full; the journal has them all.
            self._export.send(missed)
        elif killed:
            spans = [each for each in missed if isinstance(each, OtelSpan)]
            self._export.send(each for each in spans if each.ended_at >= last - UNSENT_SECONDS)
        return signals


def otel_observer(setup: ObserverSetup, *, endpoint: str | None = None) -> OtelObserver:
    """Returns the observer of `observe: {otel: ...}`; raises `ConfigError` without the extra."""
    return OtelObserver(setup, otlp_exporters(endpoint, timeout=LIVE_SECONDS))
