"""Traces runs while they are driven, with OpenTelemetry's SDK, which sends batches.

Batches are sent by threads of the SDK. A collector that is slow or down delays no run; what it
cannot take is lost, and `signoff export otel` sends it later, under the same ids.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterable, Sequence

from signoff.core import events as ev
from signoff.core.errors import ConfigError
from signoff.runtime.extras import install_command
from signoff.runtime.ports import Notice, Recorded
from signoff.runtime.store_port import Store
from signoff.views.exports.otel import SERVICE, OtelSpan, RunSpans, nanoseconds
from signoff.views.queued import ObserverSetup

# This module is loaded only where the settings or a command ask for it.
try:
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
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


def otlp_exporter(endpoint: str | None, *, timeout: float | None = None) -> SpanExporter:
    """Returns what sends by OTLP over HTTP, configured by the usual `OTEL_` variables.

    `endpoint` is the collector's address without a path, such as `http://localhost:4318`.
    """
    # In seconds, retries included; what the user sets goes before.
    timeout = None if "OTEL_EXPORTER_OTLP_TIMEOUT" in os.environ else timeout
    # It would print a line for each retry of each batch; `_WatchedExporter` says it once.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    address = None if endpoint is None else f"{endpoint.rstrip('/')}/v1/traces"
    return OTLPSpanExporter(endpoint=address, timeout=timeout)


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
    """Sends spans as they come."""

    def __init__(self, exporter: SpanExporter, *, report: bool = True) -> None:
        """`report` warns once if no collector takes the spans."""
        self._exporter = _WatchedExporter(exporter, report=report)
        # The environment may name the service and add attributes, and goes before our name.
        named = Resource.create({"service.name": SERVICE})
        self._resource = named.merge(OTELResourceDetector().detect())
        delay = BATCH_SECONDS * 1000
        self._spans = BatchSpanProcessor(self._exporter, schedule_delay_millis=delay)

    def send(self, spans: Iterable[OtelSpan]) -> None:
        """Queues spans; returns at once."""
        for span in spans:
            self._spans.on_end(self._sdk_span(span))

    def deliver(self, spans: Iterable[OtelSpan]) -> bool:
        """Sends spans and waits for the collector; tells whether it took them."""
        whole = [self._sdk_span(each) for each in spans]
        for at in range(0, len(whole), BATCH_SPANS):
            self._exporter.export(whole[at : at + BATCH_SPANS])
            if self._exporter.failed:
                return False
        return True

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Sends what is queued, for at most that many seconds."""
        # A collector that does not answer blocks this for as long as its timeout. One that has not
        # answered before is not waited for.
        thread = threading.Thread(target=self._spans.shutdown, daemon=True)
        thread.start()
        thread.join(0.0 if self._exporter.failed else seconds)

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


def _context(trace_id: str, span_id: str) -> trace.SpanContext:
    flags = trace.TraceFlags(trace.TraceFlags.SAMPLED)
    return trace.SpanContext(int(trace_id, 16), int(span_id, 16), False, flags)


class OtelObserver:
    """Sends each span when it ends.

    A run that this process did not start is read from its journal first, so that its trace
    continues. If the process before was killed, the spans that ended in its last minute are sent
    again, under the same ids: they may have been in its memory.
    """

    def __init__(self, setup: ObserverSetup, exporter: SpanExporter) -> None:
        self._setup = setup
        self._export = OtelExport(exporter)
        self._store: Store | None = None
        self._runs: dict[str, tuple[int, RunSpans]] = {}
        """The last commit of each run that was followed, and the run up to there."""

    def notice(self, notice: Notice) -> None:
        """Follows one commit."""
        if not isinstance(notice, Recorded):
            return
        seq, follow = self._runs.get(notice.run, (0, None))
        if follow is None or seq + 1 != notice.seq:
            follow = self._catch_up(notice.run, seq, notice.seq, follow)
        for event in notice.events:
            self._export.send(follow.apply(event))
        self._runs[notice.run] = notice.seq, follow
        if any(isinstance(event, ev.RunStopped) for event in notice.events):
            # A process that drives thousands of runs must not remember them all.
            del self._runs[notice.run]

    def close(self) -> None:
        """Sends what is still queued, for a few seconds at most."""
        self._export.close()
        if self._store is not None:
            self._store.close()

    def _catch_up(self, name: str, seq: int, to: int, follow: RunSpans | None) -> RunSpans:
        """Reads the commits that were not followed, and sends what may be missing of them."""
        if self._store is None:
            # Opened here because only this thread may use it.
            self._store = self._setup.open_store()
        record = self._setup.record_of(self._store, name)
        content = self._setup.log_content
        if follow is None:
            follow = RunSpans(name, content)
        missed: list[OtelSpan] = []
        killed, last = False, 0.0
        for number, event in record.events(whole=content):
            if seq < number < to:
                missed += follow.apply(event)
                killed, last = not isinstance(event, ev.RunStopped), event.at
        if seq:
            # Notices were dropped because the queue was full; the journal has them all.
            self._export.send(missed)
        elif killed:
            self._export.send(each for each in missed if each.ended_at >= last - UNSENT_SECONDS)
        return follow


def otel_observer(setup: ObserverSetup, *, endpoint: str | None = None) -> OtelObserver:
    """Returns the observer of `observe: {otel: ...}`; raises `ConfigError` without the extra."""
    return OtelObserver(setup, otlp_exporter(endpoint, timeout=LIVE_SECONDS))
