"""The trace of a run as OTLP in JSON lines: what collectors and backends of OpenTelemetry read.

It needs no package, and works for runs that were never traced. Ids and times come from the journal,
so exporting again, or after live tracing, gives the same trace.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from signoff.exports.run_record import Export, ExportOptions, RunRecord
from signoff.telemetry.genai_names import METRIC_UNITS
from signoff.telemetry.metrics import Distribution
from signoff.telemetry.otel_signals import (
    Attribute,
    OtelEvent,
    OtelMeasurement,
    OtelSignals,
    OtelSpan,
    Signal,
)

SERVICE = "signoff"
SECONDS = (0.01, 0.04, 0.16, 0.64, 2.56, 10.24, 40.96, 163.84, 655.36, 2621.44, 10485.76)
COUNTS = (1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0)
"""Bounds of histograms of seconds, and of tokens and calls."""

_INTERNAL, _CLIENT, _ERROR, _INFO, _CUMULATIVE = 1, 3, 2, 9, 2
"""Numbers of the protocol: two kinds of span, a status, a severity, a temporality."""


def otel(record: RunRecord, options: ExportOptions) -> Iterator[str]:
    """Yields one line for the spans, one for the findings and one for the metrics of a run."""
    signals = all_signals(record, options)
    spans = [each for each in signals if isinstance(each, OtelSpan)]
    events = [each for each in signals if isinstance(each, OtelEvent)]
    measurements = [each for each in signals if isinstance(each, OtelMeasurement)]
    start = min((each.started_at for each in spans), default=0.0)
    end = max((each.ended_at for each in spans), default=0.0)
    yield _line("resourceSpans", "scopeSpans", "spans", map(_span, spans))
    if events:
        yield _line("resourceLogs", "scopeLogs", "logRecords", map(_log, events))
    if measurements:
        metrics = _metrics(measurements, start, end)
        yield _line("resourceMetrics", "scopeMetrics", "metrics", metrics)


def all_signals(record: RunRecord, options: ExportOptions) -> list[Signal]:
    """Returns everything about a run, in the order in which it ended; open spans come last."""
    history = record.history(record.definition) if record.history is not None else None
    follow = OtelSignals(record.name, history, options.content)
    # By identity, and in the order of the journal: the same run gives the same bytes every time, so
    # an export that is sent twice is one trace.
    signals: dict[tuple[str, str], Signal] = {}
    for _, event in record.events(whole=options.content):
        for signal in follow.apply(event):
            # A run that failed and was resumed ends twice: its last span is the whole one.
            signals[_identity(signal, len(signals))] = signal
    for signal in follow.unfinished():
        signals[_identity(signal, len(signals))] = signal
    return list(signals.values())


def _identity(signal: Signal, number: int) -> tuple[str, str]:
    return ("span", signal.span_id) if isinstance(signal, OtelSpan) else ("other", str(number))


def _line(resource: str, scope: str, items: str, values: Iterable[dict[str, Any]]) -> str:
    service = _attributes({"service.name": SERVICE})
    scoped = {"scope": {"name": SERVICE}, items: list(values)}
    document = {resource: [{"resource": {"attributes": service}, scope: [scoped]}]}
    return json.dumps(document, separators=(",", ":")) + "\n"


def _span(span: OtelSpan) -> dict[str, Any]:
    parent = {"parentSpanId": span.parent_id} if span.parent_id else {}
    return {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        **parent,
        "name": span.name,
        "kind": _CLIENT if span.client else _INTERNAL,
        "startTimeUnixNano": _nanoseconds(span.started_at),
        "endTimeUnixNano": _nanoseconds(span.ended_at),
        "attributes": _attributes(span.attributes),
        "status": {"code": _ERROR} if span.failed else {},
    }


def _log(event: OtelEvent) -> dict[str, Any]:
    return {
        "timeUnixNano": _nanoseconds(event.at),
        "observedTimeUnixNano": _nanoseconds(event.at),
        "severityNumber": _INFO,
        "eventName": event.name,
        "attributes": _attributes(event.attributes),
        "traceId": event.trace_id,
        "spanId": event.span_id,
    }


def _metrics(
    measurements: Iterable[OtelMeasurement], start: float, end: float
) -> Iterator[dict[str, Any]]:
    series: dict[str, dict[str, tuple[OtelMeasurement, Distribution]]] = {}
    for each in measurements:
        key = json.dumps(each.attributes, sort_keys=True)
        bounds = SECONDS if METRIC_UNITS[each.metric] == "s" else COUNTS
        points = series.setdefault(each.metric, {})
        points.setdefault(key, (each, Distribution(bounds)))[1].add(each.value)
    for metric, points in sorted(series.items()):
        data = [_point(first, values, start, end) for _, (first, values) in sorted(points.items())]
        histogram = {"aggregationTemporality": _CUMULATIVE, "dataPoints": data}
        yield {"name": metric, "unit": METRIC_UNITS[metric], "histogram": histogram}


def _point(
    first: OtelMeasurement, values: Distribution, start: float, end: float
) -> dict[str, Any]:
    return {
        "attributes": _attributes(first.attributes),
        "startTimeUnixNano": _nanoseconds(start),
        "timeUnixNano": _nanoseconds(end),
        "count": str(sum(values.counts)),
        "sum": values.total,
        "bucketCounts": [str(count) for count in values.counts],
        "explicitBounds": list(values.bounds),
    }


def _attributes(attributes: Mapping[str, Attribute]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: Attribute) -> dict[str, Any]:
    match value:
        case str():
            return {"stringValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case _:
            return {"arrayValue": {"values": [{"stringValue": each} for each in value]}}


def _nanoseconds(at: float) -> str:
    return str(nanoseconds(at))


def nanoseconds(at: float) -> int:
    """Returns a time as OpenTelemetry counts it; to the microsecond, as floats are no better."""
    return round(at * 1_000_000) * 1000


EXPORT = Export("otel", "The trace of the run, for OpenTelemetry (OTLP in JSON lines).", otel)
