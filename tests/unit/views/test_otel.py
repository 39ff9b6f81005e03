import importlib
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from signoff.core import events as ev
from signoff.core.errors import ConfigError
from signoff.core.outcome import Outcome
from signoff.runtime.ports import Recorded
from signoff.store.sqlite import MemoryStore
from signoff.views import otel
from signoff.views.exports import otel as otel_export
from signoff.views.exports.otel import OtelSpan, nanoseconds
from signoff.views.exports.run_record import ExportOptions
from signoff.views.otel import OtelExport, OtelObserver
from signoff.views.queued import ObserverSetup
from tests.patience import PATIENCE_SECONDS
from tests.unit.views.events import answers, asks, at, journal
from tests.unit.views.exports.records import record_of_events

Span = tuple[str, int, int, int | None, int, int, str, dict[str, Any]]


class Process:
    """A process that traces what it records, with its own memory of nothing."""

    def __init__(self, stored: Sequence[ev.Event]) -> None:
        self.spans = InMemorySpanExporter()
        self._stored = [*stored]
        setup = ObserverSetup(
            open_store=MemoryStore,
            record_of=lambda _store, _run: record_of_events(self._stored),
            folder=Path(),
        )
        self.observer = OtelObserver(setup, self.spans)

    def record(self, events: Sequence[ev.Event], *, heard: bool = True) -> None:
        """Commits each event; notices of those not `heard` are lost on the way."""
        for event in events:
            self._stored.append(event)
            if heard:
                self.observer.notice(Recorded("first", [event], len(self._stored)))

    def sent(self) -> Iterator[Span]:
        """Closes the process, and yields the spans it sent."""
        self.observer.close()
        for span in self.spans.get_finished_spans():
            assert span.context is not None
            assert span.start_time is not None
            assert span.end_time is not None
            parent = span.parent.span_id if span.parent is not None else None
            ids = (span.context.trace_id, span.context.span_id, parent)
            times = (span.start_time, span.end_time)
            yield span.name, *ids, *times, span.status.status_code.name, dict(span.attributes or {})


def exported(events: Sequence[ev.Event]) -> list[Span]:
    """Returns what `signoff export otel` has about the run, in the same form."""
    spans = otel_export.all_spans(record_of_events(events), ExportOptions())
    return [
        (
            each.name,
            int(each.trace_id, 16),
            int(each.span_id, 16),
            int(each.parent_id, 16) if each.parent_id else None,
            nanoseconds(each.started_at),
            nanoseconds(each.ended_at),
            (StatusCode.ERROR if each.failed else StatusCode.UNSET).name,
            dict(each.attributes),
        )
        for each in spans
    ]


def by_id(spans: Sequence[Span]) -> dict[int, Span]:
    return {each[2]: each for each in spans}


def test_a_process_killed_at_any_commit_leaves_the_same_trace() -> None:
    """Whatever was sent before the kill and after it adds up to the export."""
    events = journal()
    expected = by_id(exported(events))
    for kill in range(1, len(events)):
        killed, rescuer = Process([]), Process(events[:kill])
        killed.record(events[:kill])
        rescuer.record(events[kill:])

        assert by_id([*killed.sent(), *rescuer.sent()]) == expected, kill


def test_notices_that_were_lost_are_read_from_the_journal() -> None:
    """A full queue must not leave holes in the trace."""
    events = journal()
    process = Process([])
    process.record(events[:3])
    process.record(events[3:8], heard=False)
    process.record(events[8:])

    assert list(process.sent()) == exported(events)


def test_a_run_that_stops_is_forgotten_and_read_again_when_it_goes_on() -> None:
    """A process that drives thousands of runs must not remember them all."""
    events = journal()
    process = Process([])
    process.record(events[:12])
    assert process.observer._runs == {}

    process.record(events[12:])

    assert by_id(list(process.sent())) == by_id(exported(events))


def test_the_environment_names_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operators tell their projects apart by it."""
    monkeypatch.setenv("OTEL_SERVICE_NAME", "reviews")
    process = Process([])
    process.record(
        [
            *journal()[:2],
            at(1, asks("draft#1")),
            at(2, answers("draft#1")),
            at(3, ev.StepFinished(Outcome.OK, "w", None, {})),
        ]
    )
    process.observer.close()

    spans = process.spans.get_finished_spans()
    assert {span.resource.attributes["service.name"] for span in spans} == {"reviews"}


class Collector(SpanExporter):
    """Takes nothing, or never answers."""

    def __init__(self, *, hangs: bool = False) -> None:
        self.asked = 0
        self._answer = threading.Event()
        if not hangs:
            self._answer.set()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.asked += 1
        self._answer.wait(PATIENCE_SECONDS)
        return SpanExportResult.FAILURE

    def shutdown(self) -> None:
        self._answer.set()


def all_spans() -> list[OtelSpan]:
    return otel_export.all_spans(record_of_events(journal()), ExportOptions())


def sending_to(collector: Collector) -> OtelExport:
    return OtelExport(collector)


def test_a_collector_that_takes_nothing_is_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A line for each batch would bury what the run has to say."""
    collector = Collector()
    export = sending_to(collector)

    assert not export.deliver(all_spans())
    assert not export.deliver(all_spans())
    export.close()

    assert collector.asked == 2
    assert [each.message for each in caplog.records if "no collector" in each.message] != []
    assert len(caplog.records) == 1


def test_a_collector_that_never_answers_does_not_keep_the_command_from_ending() -> None:
    """The spans are in the journal, and can be exported later."""
    collector = Collector(hangs=True)
    export = sending_to(collector)
    export.send(all_spans())

    export.close(seconds=0.1)

    collector.shutdown()


def test_without_the_extra_the_user_is_told_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The settings ask for traces, and a run without them would be a surprise."""
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)

    with pytest.raises(ConfigError, match=r"install it: .*\[otel\]"):
        importlib.reload(otel)
