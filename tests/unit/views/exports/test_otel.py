import json
from base64 import b64encode
from dataclasses import replace
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from signoff.core import events as ev
from signoff.core.effects import EffectId
from signoff.core.errors import StoreDamaged
from signoff.core.outcome import Status
from signoff.views.exports.otel import otel
from signoff.views.exports.run_record import ExportOptions
from tests.unit.views.events import answers, asks, at, journal
from tests.unit.views.exports.records import record_of_events

REQUESTS: dict[str, Any] = {
    "resourceSpans": ExportTraceServiceRequest,
}
"""What a collector parses, by the first key of a line."""


def parsed(events: list[ev.Event], **options: Any) -> dict[str, Any]:
    """Reads each line as a collector does: ids are hexadecimal, unlike elsewhere in protobuf."""
    found = {}
    for line in otel(record_of_events(events), ExportOptions(**options)):
        document = _with_base64_ids(json.loads(line))
        (key,) = document
        found[key] = ParseDict(document, REQUESTS[key]())
    return found


def _with_base64_ids(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_base64_ids(each) for each in value]
    if not isinstance(value, dict):
        return value
    ids = {"traceId", "spanId", "parentSpanId"}
    return {
        key: b64encode(bytes.fromhex(each)).decode() if key in ids else _with_base64_ids(each)
        for key, each in value.items()
    }


def test_a_collector_can_read_every_line() -> None:
    """The documents are those of the protocol, field by field."""
    item = at(72, ev.ItemFinished("critics[0]", {}))
    found = parsed([*journal()[:9], item, *journal()[9:]])

    spans = found["resourceSpans"].resource_spans[0].scope_spans[0].spans
    assert [span.name for span in spans] == [
        "chat opus", "chat opus", "chat opus", "draft", "wait", "invoke_agent codex", "sign",
        "invoke_workflow docs",
    ]  # fmt: skip
    assert len({span.span_id for span in spans}) == 8
    assert {len(span.trace_id) for span in spans} == {16}


def test_exporting_again_gives_the_same_bytes() -> None:
    """Two exports of one run are one trace, wherever they are sent."""
    lines = [list(otel(record_of_events(journal()), ExportOptions())) for _ in range(2)]

    assert lines[0] == lines[1]
    assert len(lines[0]) == 1


def test_a_run_that_failed_and_was_resumed_has_one_span_for_the_whole_run() -> None:
    """Its first end is not the end of the trace."""
    failed = [
        *journal()[:3],
        at(5, ev.EffectFinished(EffectId("draft#1"), error={"type": "AgentAuth"})),
        at(5, ev.RunStopped(Status.FAILED)),
    ]
    resumed = [
        *failed,
        at(60, ev.RunResumed()),
        at(61, asks("draft#1")),
        at(62, answers("draft#1")),
    ]

    before = parsed(failed)["resourceSpans"].resource_spans[0].scope_spans[0].spans
    after = parsed(resumed)["resourceSpans"].resource_spans[0].scope_spans[0].spans

    assert [span.name for span in before] == ["chat opus", "draft", "invoke_workflow docs"]
    assert sorted(span.name for span in after) == [
        "chat opus", "draft", "invoke_agent claude", "invoke_workflow docs",
    ]  # fmt: skip
    whole = {span.name: span for span in after}["invoke_workflow docs"]
    assert whole.end_time_unix_nano - whole.start_time_unix_nano == 62 * 10**9


def test_a_lost_text_does_not_keep_a_run_from_being_exported() -> None:
    """The trace needs no texts, and a damaged run is the one to look at."""
    record = record_of_events(journal())
    lost = json.dumps({"$blob": "ab" * 32})
    rows = [
        row._replace(events=row.events.replace('"secret prompt"', lost)) for row in record.journal
    ]

    assert rows != record.journal
    assert "chat opus" in "".join(otel(replace(record, journal=rows), ExportOptions()))
    with pytest.raises(StoreDamaged):
        list(otel(replace(record, journal=rows), ExportOptions(content=True)))


def test_five_thousand_effects_are_no_problem() -> None:
    """A long run is the one whose trace is needed."""
    pairs = [
        event
        for number in range(5000)
        for event in (at(number, asks(f"e#{number}")), at(number + 1, answers(f"e#{number}")))
    ]

    found = parsed([*journal()[:2], *pairs])

    assert len(found["resourceSpans"].resource_spans[0].scope_spans[0].spans) == 5002
